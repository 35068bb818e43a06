import { formatCount, formatRelativeTime } from "../../format.ts";
import { type Charts, chartsIn, createCharts } from "./charts.ts";

const REFRESH_MS = 5000;
const MAX_WAIT_MS = 10_000;

/**
 * Fetches the page again every 5 seconds, and takes over the parts with `data-live`. Stops while nobody
 * sees the page.
 */
function startRefreshing(url: string, charts: Charts): void {
  let timer: ReturnType<typeof setTimeout> | undefined;

  function schedule(): void {
    clearTimeout(timer);
    if (!document.hidden) timer = setTimeout(refresh, REFRESH_MS);
  }

  async function refresh(): Promise<void> {
    const page = await fetchPage(url);
    document.body.classList.toggle("stale", page === undefined);
    if (page) takeOver(page, charts);
    schedule();
  }

  document.addEventListener("visibilitychange", schedule);
  schedule();
}

/** @returns undefined if the Worker does not answer, or the session has ended */
async function fetchPage(url: string): Promise<Document | undefined> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(MAX_WAIT_MS) });
    if (!response.ok) return undefined;
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    return page.body.dataset.refresh === url ? page : undefined;
  } catch {
    return undefined;
  }
}

function takeOver(page: Document, charts: Charts): void {
  // Parts that are new, such as the charts after the first request, need the whole page.
  const hasNewParts = [...page.querySelectorAll("[data-live]")].some(
    ({ id }) => !document.getElementById(id),
  );
  if (hasNewParts) {
    location.reload();
    return;
  }
  for (const part of document.querySelectorAll<HTMLElement>("[data-live]")) {
    const fresh = page.getElementById(part.id);
    if (!fresh) continue;
    if (part.dataset.chart !== undefined) {
      charts.update(part, fresh.dataset.chart ?? "");
      replaceContent(part.querySelector("tbody"), fresh.querySelector("tbody"));
    } else {
      replaceContent(part, fresh);
    }
  }
}

/** Keeps a part in which the operator works: replacing it would take the focus away. */
function replaceContent(part: Element | null, fresh: Element | null): void {
  if (!part || !fresh || part.innerHTML === fresh.innerHTML) return;
  if (part.contains(document.activeElement)) return;
  part.replaceChildren(...fresh.childNodes);
}

/** Filters the rows of tables while the operator types. */
function filterRows(root: Document): void {
  for (const input of root.querySelectorAll<HTMLInputElement>("input[data-filter]")) {
    // The server has left out the rows without the text of the address. Others can only come from the server.
    const sent = input.value.trim().toLowerCase();
    input.addEventListener("input", () => {
      const sought = input.value.trim().toLowerCase();
      if (!sought.includes(sent)) return;
      const rows = root.querySelectorAll<HTMLElement>(`#${input.dataset.filter} tr[data-text]`);
      let shown = 0;
      for (const row of rows) {
        row.hidden = !row.dataset.text?.includes(sought);
        if (!row.hidden) shown += 1;
      }
      const output = input.form?.querySelector("output");
      if (output)
        output.textContent = `${formatCount(shown)} of ${formatCount(rows.length, "rule")}`;
    });
  }
}

const INTERVAL_MS = 5000;

/** Keeps relative times true while a page is open. */
function refreshTimes(root: Document): void {
  setInterval(() => {
    if (root.hidden) return;
    for (const time of root.querySelectorAll<HTMLTimeElement>("time[data-relative]")) {
      time.textContent = formatRelativeTime(Date.parse(time.dateTime), Date.now());
    }
  }, INTERVAL_MS);
}

// The script of all pages. Every page can be read without it: it makes charts interactive, refreshes numbers
// and filters rules while the operator types.

const charts = createCharts();
for (const figure of chartsIn(document)) charts.mount(figure);
filterRows(document);
refreshTimes(document);
const { refresh } = document.body.dataset;
if (refresh !== undefined) startRefreshing(refresh, charts);
