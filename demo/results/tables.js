// Tables: published figures beside ours, in groups of columns that say whose they are.

function groupRow(groups) {
  const line = make("tr", "groups");
  line.append(make("td"));
  for (const one of groups) {
    const cell = make("th", one.kind, one.name);
    cell.colSpan = one.span;
    cell.scope = "colgroup";
    line.append(cell);
  }
  return line;
}

// The kind of each column: what its group is, "" without groups.
function kindsOf(table) {
  return table.groups.length ? table.groups.flatMap((one) => Array(one.span).fill(one.kind)) : table.heads.map(() => "");
}

function firstOfGroups(table) {
  const firsts = new Set();
  let place = 0;
  for (const one of table.groups) {
    if (place) firsts.add(place);
    place += one.span;
  }
  return firsts;
}

function figuresTable(table) {
  const kinds = kindsOf(table);
  const firsts = firstOfGroups(table);
  const node = make("table", "figures");
  const top = make("thead");
  if (table.groups.length) top.append(groupRow(table.groups));
  const head = make("tr");
  head.append(make("td"), ...table.heads.map((words, k) => {
    const cell = make("th", kinds[k] + (firsts.has(k) ? " first" : ""), words);
    cell.scope = "col";
    return cell;
  }));
  top.append(head);
  const body = make("tbody");
  for (const row of table.rows) {
    const line = make("tr", (row.strong ? "strong" : "") + (row.quiet ? " quiet" : ""));
    const name = make("th", "", row.name);
    name.scope = "row";
    line.append(name, ...row.cells.map((one, k) => {
      const cell = make("td", kinds[k] + (firsts.has(k) ? " first" : ""), one.text);
      if (one.small) cell.append(make("small", "", one.small));
      return cell;
    }));
    body.append(line);
  }
  node.append(top, body);
  return node;
}

// A table with its title and what it means; wide ones scroll by themselves.
function tableBlock(table) {
  const block = make("section", "block");
  block.setAttribute("aria-label", table.title);
  const head = make("div", "blockhead");
  head.append(make("h2", "", table.title));
  block.append(head);
  if (table.note) block.append(make("p", "key", table.note));
  if (!table.rows.length) return block;
  const scroll = make("div", "scroll");
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", "Table: " + table.title);
  scroll.append(figuresTable(table));
  block.append(scroll);
  return block;
}
