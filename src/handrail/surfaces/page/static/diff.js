// Shows a diff, below or beside each other. Its rows come from the server in pieces, when they come into view.

import { el } from "./dom.js";
import { coloured, languageOf } from "./highlight.js";
import { Windowed } from "./windowed.js";

const PIECE = 200;
const ROW = 20;
const CLASSES = { file: "d-file", hunk: "d-hunk", note: "d-note", " ": "d-same", "-": "d-gone", "+": "d-new", "~": "d-both" };
const WIDE = matchMedia("(min-width: 1000px)");
let wanted = localStorage.getItem("handrail-split");

// `load(split, start, count)` returns a promise of rows; `summary` says how many there are.
export function diffView(summary, load, { most = 22, cut = 0 } = {}) {
  if (!summary.unified) return null;
  const host = el("div", { class: "diff" });
  const draw = () => {
    const split = wanted === null ? WIDE.matches && summary.removed > 0 : wanted === "yes";
    host.replaceChildren(head(summary, split, (next) => {
      wanted = next ? "yes" : "no";
      localStorage.setItem("handrail-split", wanted);
      draw();
    }), body(summary, load, split, most));
    if (cut) host.append(el("p", { class: "careful" }, `The diff goes on: ${cut} more characters are not shown.`));
  };
  draw();
  const redraw = () => (host.isConnected ? draw() : WIDE.removeEventListener("change", redraw));
  WIDE.addEventListener("change", redraw);
  return host;
}

function head(summary, split, choose) {
  const files = summary.files.length;
  const button = (name, value) =>
    el("button", { type: "button", class: "small", "aria-pressed": String(split === value), onclick: () => choose(value) }, name);
  return el("div", { class: "diff-head" },
    el("span", { class: "diff-files" }, files === 1 ? summary.files[0] : `${files} files`),
    el("span", { class: "diff-count" }, el("span", { class: "added" }, `+${summary.added}`), " ", el("span", { class: "removed" }, `−${summary.removed}`)),
    el("span", { class: "choice", role: "group", "aria-label": "Layout of the diff" }, button("Unified", false), button("Side by side", true)));
}

function body(summary, load, split, most) {
  const count = split ? summary.split : summary.unified;
  const pieces = new Map();
  const languages = new Map();
  const language = (n) => {
    for (let at = n; at >= 0 && at > n - 5000; at--) {
      const row = rowAt(at);
      if (!row) break;
      if (row[0] === "file") return languages.get(row[2]) ?? languages.set(row[2], languageOf(row[2])).get(row[2]);
    }
    return summary.files.length === 1 ? languageOf(summary.files[0]) : "";
  };
  const rowAt = (n) => pieces.get(Math.floor(n / PIECE))?.[n % PIECE];
  const fetchPiece = async (number) => {
    pieces.set(number, []);
    try {
      pieces.set(number, (await load(split, number * PIECE, PIECE)).rows);
    } catch {
      pieces.delete(number);
      return;
    }
    for (let n = number * PIECE; n < (number + 1) * PIECE; n++) list.redraw(n);
  };
  const draw = (n) => {
    const number = Math.floor(n / PIECE);
    if (!pieces.has(number)) fetchPiece(number);
    const row = rowAt(n);
    return row ? rowView(row, split, language(n)) : el("div", { class: "d-row d-note" }, "…");
  };
  const list = new Windowed({ label: "Diff", rowHeight: ROW, draw, most });
  list.host.classList.add("diff-body", split ? "diff-split" : "diff-unified");
  list.room.style.setProperty("--chars", String(summary.widest));
  list.resize(count);
  return list.host;
}

function rowView([kind, oldLine, oldText, newLine, newText], split, language) {
  const number = (n) => el("span", { class: "d-no", "aria-hidden": "true" }, n > 0 ? n : n < 0 ? "↳" : "");
  const side = (name, sign, n, text) =>
    el("span", { class: `d-side ${name}` }, number(n), el("span", { class: "d-sign" }, sign), el("span", { class: "d-text" }, coloured(text, language)));
  const shape = { class: `d-row ${CLASSES[kind] ?? "d-note"}` };
  if (kind === "file" || kind === "hunk" || kind === "note") return el("div", shape, el("span", { class: "d-whole" }, oldText));
  if (split) {
    return el("div", shape,
      oldLine ? side(kind === " " ? "" : "gone", kind === " " ? " " : "−", oldLine, oldText) : el("span", { class: "d-side none" }),
      newLine ? side(kind === " " ? "" : "new", kind === " " ? " " : "+", newLine, newText) : el("span", { class: "d-side none" }));
  }
  const text = kind === "+" ? newText : oldText;
  return el("div", shape, number(oldLine), number(newLine), el("span", { class: "d-sign" }, kind === "-" ? "−" : kind), el("span", { class: "d-text" }, coloured(text, language)));
}
