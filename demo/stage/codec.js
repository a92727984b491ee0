// Packed numbers from the server, colours of the maps.

function bytesOf(text) {
  return Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
}

// index -> seconds, from one even step or from every time stamp.
function timeTable(table, count) {
  if (table.packed === undefined) {
    const step = table.step;
    return {
      seconds: (index) => index * step,
      nearest: (time) => Math.max(0, Math.min(count - 1, step > 0 ? Math.round(time / step) : 0)),
      at: (time) => Math.max(0, Math.min(count - 1, step > 0 ? Math.floor(time / step + 1e-6) : 0)),
    };
  }
  const bytes = bytesOf(table.packed);
  const all = new Float64Array(bytes.buffer);
  const at = (time) => {
    let low = 0;
    let high = all.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (all[middle] <= time + 1e-9) low = middle;
      else high = middle - 1;
    }
    return low;
  };
  const nearest = (time) => {
    const before = at(time);
    const after = Math.min(before + 1, all.length - 1);
    return time - all[before] <= all[after] - time ? before : after;
  };
  return { seconds: (index) => all[index], nearest, at };
}

function unpackMap(map) {
  const bytes = bytesOf(map.packed);
  map.values = Float32Array.from(new Int16Array(bytes.buffer), (whole) => whole / 32767);
  return map;
}

const PALETTES = {
  cividis: ["00224e", "123570", "3b496c", "575d6d", "707173", "8a8678", "a59c74", "c3b369", "e1cc55", "fee838"],
  viridis: ["440154", "482878", "3e4989", "31688e", "26828e", "1f9e89", "35b779", "6ece58", "b5de2b", "fde725"],
};
const paletteTables = {};

function paletteTable(name) {
  if (paletteTables[name]) return paletteTables[name];
  const stops = PALETTES[name].map((hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  const table = new Uint8ClampedArray(256 * 3);
  for (let step = 0; step < 256; step += 1) {
    const place = (step / 255) * (stops.length - 1);
    const low = Math.min(Math.floor(place), stops.length - 2);
    for (let part = 0; part < 3; part += 1) {
      table[step * 3 + part] = stops[low][part] + (stops[low + 1][part] - stops[low][part]) * (place - low);
    }
  }
  paletteTables[name] = table;
  return table;
}

function mapRange(facts, map, shared) {
  if (!shared) return [map.low, map.high];
  return [Math.min(...facts.maps.map((one) => one.low)), Math.max(...facts.maps.map((one) => one.high))];
}

// A picture of one pixel a cell. seeThrough: 0 is transparent, as an overlay needs it.
function mapPicture(map, range, palette, seeThrough) {
  const picture = document.createElement("canvas");
  picture.width = map.columns;
  picture.height = map.rows;
  const pen = picture.getContext("2d");
  const pixels = pen.createImageData(map.columns, map.rows);
  const table = paletteTable(palette);
  const span = range[1] - range[0];
  map.values.forEach((value, cell) => {
    const level = span > 0 ? Math.max(0, Math.min(1, (value - range[0]) / span)) : 0;
    const step = Math.round(level * 255);
    for (let part = 0; part < 3; part += 1) pixels.data[cell * 4 + part] = table[step * 3 + part];
    pixels.data[cell * 4 + 3] = seeThrough ? Math.round(255 * Math.min(1, level * 3)) : 255;
  });
  pen.putImageData(pixels, 0, 0);
  return picture;
}
