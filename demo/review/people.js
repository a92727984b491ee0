// Who reviews: a name said once, or a login; how they want to review.

const me = { name: "", token: "", mode: "open" };

// A login lasts as long as this tab, where the browser keeps anything at all.
const tabMemory = {
  get token() {
    try {
      return sessionStorage.getItem("refinerank-token") || "";
    } catch {
      return "";
    }
  },
  set token(text) {
    try {
      sessionStorage.setItem("refinerank-token", text);
    } catch {
      // Then it lasts as long as this page.
    }
  },
};

const wish = { blind: false, drawFirst: false };

function people() {
  me.mode = props.identity;
  me.name = kept("refinerank-name") || "";
  if (me.mode === "accounts") {
    me.token = tabMemory.token;
    if (!me.token) me.name = "";
  } else if (me.mode === "hub") me.name = "";
  wish.blind = kept("refinerank-blind") === "yes";
  wish.drawFirst = kept("refinerank-drawfirst") === "yes";
  $("blind").checked = wish.blind;
  $("drawfirst").checked = wish.drawFirst;
  $("ephemeral").hidden = !props.ephemeral;
  whoChanged();
}

// The Hub has said who this is.
function visitorArrived() {
  const visitor = plain(props.visitor);
  if (!visitor || !visitor.token) return;
  Object.assign(me, visitor);
  whoChanged();
  flush();
}

function whoChanged() {
  $("who").textContent = me.name || (me.mode === "open" ? "Who are you?" : "Log in to decide");
  window.refinerankToken = me.token; // Explore puts answers into the queue under the same name
  $("who").title = me.name ? "Decisions carry this name. Click to change it." : "Anyone may look; decisions carry a name.";
}

const mayDecide = () => Boolean(me.name && (me.mode === "open" || me.token));

function askWho(then) {
  if ($("dialog").open) return;
  if (me.mode === "hub") {
    askHub();
    return;
  }
  const form = make("form", "whoform");
  const name = make("input", "linkfield");
  name.value = me.name;
  name.maxLength = 200;
  name.setAttribute("aria-label", "Your name");
  name.placeholder = "Your name";
  name.autocomplete = "username";
  form.append(name);
  const secret = make("input", "linkfield");
  const fault = make("p", "fault");
  if (me.mode === "accounts") {
    secret.type = "password";
    secret.placeholder = "Password";
    secret.autocomplete = "current-password";
    secret.setAttribute("aria-label", "Password");
    form.append(secret);
  }
  const go = make("button", "primary", me.mode === "accounts" ? "Log in" : "Go on");
  form.append(fault, go);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const wanted = name.value.normalize("NFC").trim().replace(/\s+/g, " ");
    if (!wanted) {
      fault.textContent = "Write your name.";
      return;
    }
    if (me.mode === "accounts") {
      const reply = await askServer("review_login", { name: wanted, password: secret.value });
      if (reply.error) {
        fault.textContent = reply.error;
        return;
      }
      Object.assign(me, { name: reply.name, token: reply.token });
      tabMemory.token = me.token;
    } else me.name = wanted;
    keep("refinerank-name", me.name);
    $("dialog").close();
    whoChanged();
    flush();
    loadQueue();
    if (then) then();
    else if (C.id) openCase(C.id);
  });
  const words = me.mode === "accounts" ? "Anyone may look. To decide, log in." : "Your name goes with every decision. It stays in this browser until you change it.";
  openDialog(me.mode === "accounts" ? "Log in" : "Who are you?", [make("p", "", words), form]);
  name.focus();
}

// The Hub's own button, which Gradio leads to the Hub and back, is hidden in the page and pressed from here.
function askHub() {
  const inside = Boolean(me.token);
  const words = inside ? "Your decisions carry the name " + me.name + ", as the Hub knows it."
    : "Anyone may look. To decide, sign in at Hugging Face; your name there goes with every decision.";
  const go = make("button", "primary", inside ? "Log out" : "Sign in with Hugging Face");
  go.type = "button";
  go.dataset.id = "hubgo";
  go.addEventListener("click", () => {
    go.disabled = true;
    document.querySelector("#hub-login").click();
  });
  openDialog(inside ? "You are " + me.name : "Log in to decide", [make("p", "", words), go]);
  go.focus();
}

function wirePeople() {
  $("who").addEventListener("click", () => askWho());
  for (const [name, key] of [["blind", "blind"], ["drawfirst", "drawFirst"]]) {
    $(name).addEventListener("change", (event) => {
      wish[key] = event.target.checked;
      keep("refinerank-" + name, wish[key] ? "yes" : null);
      loadQueue();
      if (C.id) openCase(C.id);
    });
  }
}
