// Says what this machine offers, and whether the sandbox of a workspace works.

import { post } from "./api.js";
import { el, fill, say } from "./dom.js";
import { workspaceChoice } from "./workspaces.js";

export function doctorView() {
  let workspace = "";
  const list = el("ul", { class: "findings", "aria-label": "Findings" });
  const state = el("p", { class: "blank", role: "status" }, "No workspace is known yet.");
  const again = el("button", { type: "button", disabled: true, onclick: () => load() }, "Check again");
  const choice = workspaceChoice((path) => {
    workspace = path;
    load();
  });
  const host = el("section", { "aria-labelledby": "doctor" },
    el("div", { class: "section-head" }, el("h2", { id: "doctor" }, "Doctor"), choice.host, again), state, list);

  async function load() {
    const wanted = workspace;
    again.disabled = true;
    fill(list);
    state.textContent = "Checking this machine, and trying the sandbox…";
    try {
      const { findings } = await post("/api/doctor", { workspace });
      if (wanted !== workspace) return;
      const bad = findings.filter(([, good]) => !good).length;
      state.textContent = bad ? `${bad} of ${findings.length} checks found something missing.` : `All ${findings.length} checks are good.`;
      fill(list, findings.map(([name, good, says]) => el("li", { class: good ? "good" : "bad" },
        el("span", { class: "mark", "aria-hidden": "true" }, good ? "✓" : "✗"), el("span", { class: "hidden-text" }, good ? "Good: " : "Missing: "),
        el("strong", {}, name), " ", el("span", {}, says))));
      say(state.textContent);
    } catch (error) {
      state.textContent = error.message;
    }
    again.disabled = false;
  }

  return { host, end: () => choice.end() };
}
