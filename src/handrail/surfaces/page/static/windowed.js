// Shows a long list: only the rows that are in view exist.

import { el } from "./dom.js";

export class Windowed {
  // `draw(n)` returns the element of a row; `most` is the most rows that are shown without scrolling.
  constructor({ label, rowHeight, draw, most = 20, role = "region" }) {
    this.rowHeight = rowHeight;
    this.draw = draw;
    this.most = most;
    this.count = 0;
    this.shown = new Map();
    this.room = el("div", { class: "windowed-room" });
    this.host = el("div", { class: "windowed", tabindex: 0, role, "aria-label": label }, this.room);
    this.host.addEventListener("scroll", () => this.later());
    this.observer = new ResizeObserver(() => {
      if (this.host.clientWidth === this.width) return this.later();
      this.width = this.host.clientWidth;
      this.resize(this.count);
    });
    this.observer.observe(this.host);
  }

  resize(count, { refresh = false } = {}) {
    this.count = count;
    this.room.style.height = `${count * this.rowHeight}px`;
    const bar = this.host.scrollWidth > this.host.clientWidth ? 18 : 0;
    this.host.style.height = `${Math.max(1, Math.min(count, this.most)) * this.rowHeight + 2 + bar}px`;
    if (refresh) this.forget();
    this.update();
  }

  forget() {
    for (const row of this.shown.values()) row.remove();
    this.shown.clear();
  }

  later() {
    if (this.planned) return;
    this.planned = true;
    requestAnimationFrame(() => {
      this.planned = false;
      this.update();
    });
  }

  update() {
    const top = Math.max(0, Math.floor(this.host.scrollTop / this.rowHeight) - 10);
    const height = this.host.clientHeight || this.most * this.rowHeight;
    const end = Math.min(this.count, Math.ceil((this.host.scrollTop + height) / this.rowHeight) + 10);
    for (const [n, row] of this.shown) {
      if (n < top || n >= end) {
        row.remove();
        this.shown.delete(n);
      }
    }
    for (let n = top; n < end; n++) {
      if (!this.shown.has(n)) this.put(n);
    }
  }

  put(n) {
    const row = this.draw(n);
    row.classList.add("windowed-row");
    row.style.top = `${n * this.rowHeight}px`;
    row.style.height = `${this.rowHeight}px`;
    this.shown.get(n)?.remove();
    this.shown.set(n, row);
    const next = this.shown.get(n + 1);
    this.room.insertBefore(row, next ?? null);
  }

  redraw(n) {
    if (this.shown.has(n)) this.put(n);
  }
}
