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
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.copy) copy(button);
    else if (button.closest("thead")) sort(button.closest("th"));
  });
})();
