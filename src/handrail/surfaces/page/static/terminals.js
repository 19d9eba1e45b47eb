// Shows terminals and jobs while they run, in a terminal emulator; lets the user type, and end them.

import { post } from "./api.js";
import { baseName, clock, el, fill } from "./dom.js";
import { followOutput } from "./output.js";
import { on, sessionOf, store } from "./store.js";

// The emulator makes style elements, which the content security policy forbids: their rules go into style sheets instead.
const make = document.createElement.bind(document);
document.createElement = (tag, options) => (tag === "style" ? styleStandIn() : make(tag, options));

function styleStandIn() {
  const sheet = new CSSStyleSheet();
  const made = el("span", { hidden: true });
  document.adoptedStyleSheets.push(sheet);
  Object.defineProperty(made, "textContent", { get: () => "", set: (text) => sheet.replaceSync(text) });
  made.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet);
    Element.prototype.remove.call(made);
  };
  return made;
}

function bytes(text) {
  return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
}

export function terminalsView() {
  const list = el("ul", { class: "held-list" });
  const place = el("div", { class: "detail-place" });
  const blank = el("p", { class: "blank" }, "No terminal and no job is known. Those of every agent appear here.");
  let shown = null;
  const items = () => [...store.held.values()].flatMap((each) => each.items.map((item) => ({ ...item, session: each.session })));
  const draw = () => {
    const all = items().sort((a, b) => b.time - a.time);
    blank.hidden = all.length > 0;
    const focused = document.activeElement?.dataset.id;
    fill(list, all.map((item) => el("li", {}, el("button", { type: "button", class: `held-row${item.running ? " is-running" : ""}`, "data-held": item.name, "data-id": item.id, onclick: () => open(item) },
      el("span", { class: "dot", "aria-hidden": "true" }), el("span", { class: "c-tool" }, item.name), el("span", { class: "c-target" }, item.command),
      el("span", { class: "c-where" }, baseName(sessionOf(item.session).root)), el("span", { class: "c-by" }, item.running ? `since ${clock(item.time)}` : item.ending)))));
    if (focused) list.querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus();
    shown?.update(all.find((item) => item.id === shown.id));
  };
  let wanted = null;
  const open = async (item) => {
    wanted = item;
    const made = await heldView(item);
    if (wanted !== item) return made.end();
    shown?.end();
    shown = made;
    fill(place, shown.host);
    shown.start();
  };
  const stops = [on("held", draw), on("state", draw)];
  draw();
  return { host: el("section", { class: "terminals", "aria-labelledby": "terminals" }, el("div", { class: "section-head" }, el("h2", { id: "terminals" }, "Terminals and jobs")), blank, list, place),
    end: () => {
      wanted = null;
      stops.forEach((stop) => stop());
      shown?.end();
    } };
}

async function heldView(item) {
  const [{ Terminal }] = await Promise.all([import("./vendor/xterm.js"), styles()]);
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const terminal = new Terminal({ cols: 80, rows: 24, scrollback: 5000, disableStdin: true, convertEol: !item.terminal, fontSize: 13,
    screenReaderMode: true, linkHandler: { activate() {} }, theme: dark ? {} : { background: "#ffffff", foreground: "#1d2321", cursor: "#17604f", selectionBackground: "#cfe6df" } });
  answerNothing(terminal.parser);
  const state = el("span", { class: "dialect" }, "");
  const ask = (path, more = {}) => post(path, { held: item.id, ...more }).catch((error) => (state.textContent = error.message));
  const end = el("button", { type: "button", class: "danger small", onclick: () => ask("/api/end") }, "End");
  const typing = el("input", { type: "checkbox" });
  const label = el("label", { class: "typing" }, typing, " Type as the user; the model does not see what you type");
  typing.addEventListener("change", () => {
    terminal.options.disableStdin = !typing.checked;
    if (typing.checked) terminal.focus();
  });
  let queue = Promise.resolve();
  const sent = terminal.onData((text) => typing.checked && (queue = queue.then(() => ask("/api/type", { text }))));
  const screen = el("div", { class: "screen" });
  const host = el("article", { class: "detail held", tabindex: -1, "aria-label": item.name },
    el("header", { class: "detail-head" }, el("h3", {}, item.name, " ", state), end), screen, item.terminal && label);
  const output = followOutput(item.id, async () => (await ask("/api/held"))?.output, (piece, first) => {
    if (first) terminal.reset();
    if (piece.skipped) terminal.write(`\r\n… ${piece.skipped} bytes not shown …\r\n`);
    terminal.write(bytes(piece.data));
  });
  const update = (now) => {
    state.textContent = now?.running ? "running" : now?.ending || "ended";
    end.hidden = label.hidden = !now?.running;
  };
  update(item);
  return { id: item.id, host, update,
    start() {
      terminal.open(screen);
      output.start();
    },
    end() {
      output.end();
      sent.dispose();
      terminal.dispose();
    } };
}

// Programs ask a terminal where its cursor is and what it can do. Handrail has answered already: here nothing but keys of the user is typed.
const QUERIES = [{ final: "n" }, { prefix: "?", final: "n" }, { final: "c" }, { prefix: ">", final: "c" }, { prefix: "=", final: "c" },
  { intermediates: "$", final: "p" }, { prefix: "?", intermediates: "$", final: "p" }, { final: "t" }, { prefix: ">", final: "q" }, { prefix: "?", final: "u" }];

function answerNothing(parser) {
  for (const each of QUERIES) parser.registerCsiHandler(each, () => true);
  parser.registerDcsHandler({ intermediates: "$", final: "q" }, () => true);
  for (const colour of [4, 10, 11, 12]) parser.registerOscHandler(colour, (data) => data.includes("?"));
}

let loaded = null;
function styles() {
  loaded ??= new Promise((done) => document.head.append(el("link", { rel: "stylesheet", href: "/static/vendor/xterm.css", onload: done, onerror: done })));
  return loaded;
}
