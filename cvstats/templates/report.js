"use strict";
(() => {
  const value = (cell) => {
    const key = cell.dataset.key;
    if (key === undefined) return null;
    const number = Number(key);
    return cell.dataset.number !== undefined && key !== "" && !Number.isNaN(number) ? number : key;
  };
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), undefined, { numeric: true });
  };
  const sort = (head) => {
    const table = head.closest("table");
    const column = head.cellIndex;
    const first = head.dataset.first;
    const now = head.getAttribute("aria-sort");
    const next = now === null ? first : now === "ascending" ? "descending" : "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", next);
    const sign = next === "ascending" ? 1 : -1;
    const rows = [...table.tBodies[0].rows].map((row) => [value(row.cells[column]), row]);
    rows.sort(([a], [b]) => (a === null || b === null ? (a === null) - (b === null) : sign * compare(a, b)));
    table.tBodies[0].append(...rows.map(([, row]) => row));
  };
  const cellText = (cell) => {
    const words = (cell.dataset.text ?? cell.textContent).trim();
    return /^[=+\-@]/.test(words) && Number.isNaN(Number(words)) ? `'${words}` : words; // no formula in a spreadsheet
  };
  const text = (source) => {
    if (source.tagName !== "TABLE") return source.textContent.trim();
    return [...source.rows].map((row) => [...row.cells].map(cellText).join("\t")).join("\n");
  };
  const fallback = (words) => {
    const area = document.createElement("textarea");
    area.value = words;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  };
  const copy = async (button) => {
    const words = text(document.getElementById(button.dataset.copy));
    let done = false;
    try {
      await navigator.clipboard.writeText(words);
      done = true;
    } catch {
      done = fallback(words);
    }
    const label = button.textContent;
    button.textContent = done ? "Copied" : "Press Ctrl+C";
    setTimeout(() => { button.textContent = label; }, 1500);
  };
  const save = (name, kind, words) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([words], { type: kind }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  const csv = (table) => {
    const quoted = (words) => (/[",\n\r]/.test(words) ? `"${words.replaceAll('"', '""')}"` : words);
    const full = (cell) => {
      const words = cellText(cell); // every digit of a number; ranges and words stay as they are shown
      return cell.dataset.number !== undefined && !/[a-z]/i.test(words) ? cell.dataset.key : words;
    };
    return [...table.rows].map((row) => [...row.cells].map((cell) => quoted(full(cell))).join(",")).join("\r\n");
  };
  const svg = (figure) => {
    const shown = [...figure.querySelectorAll("svg")].find((one) => one.getBoundingClientRect().width > 0);
    const copied = shown.cloneNode(true);
    copied.setAttribute("font-family", "sans-serif");
    copied.removeAttribute("aria-hidden");
    return new XMLSerializer().serializeToString(copied);
  };
  const FEW = 25;
  const fold = (button, folded) => {
    const rows = document.getElementById(button.dataset.more).tBodies[0].rows;
    [...rows].forEach((row, at) => row.classList.toggle("folded", folded && at >= FEW));
    button.textContent = folded ? `Show all ${rows.length} rows` : `Show the first ${FEW} rows`;
    button.setAttribute("aria-expanded", String(!folded));
  };
  const more = (table) => document.querySelector(`[data-more="${table.id}"]`);
  const filter = (box) => {
    const table = document.getElementById(box.dataset.filter);
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of table.tBodies[0].rows) {
      const has = row.textContent.toLowerCase();
      row.classList.toggle("filtered", !words.every((word) => has.includes(word)));
    }
    const button = more(table);
    if (button) fold(button, !words.length); // a filter looks at all rows
    if (button) button.hidden = words.length > 0;
  };
  for (const head of document.querySelectorAll("thead th")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
  }
  for (const element of document.querySelectorAll(".copy, .script")) element.hidden = false;
  for (const button of document.querySelectorAll("[data-more]")) fold(button, true);
  document.addEventListener("input", (event) => { if (event.target.dataset.filter) filter(event.target); });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const { copy: copied, csv: table, svg: figure, more: folded } = button.dataset;
    if (copied) copy(button);
    else if (table) save(`${table}.csv`, "text/csv", csv(document.getElementById(table)));
    else if (figure) save(`${figure}.svg`, "image/svg+xml", svg(document.getElementById(figure)));
    else if (folded) fold(button, button.getAttribute("aria-expanded") === "true");
    else if (button.closest("thead")) {
      sort(button.closest("th"));
      const fewer = more(button.closest("table"));
      if (fewer) fold(fewer, fewer.getAttribute("aria-expanded") === "false");
    }
  });
})();
