import { formatRelativeTime } from "../../format.ts";
import { showValues } from "./charts.ts";

const REFRESH_MS = 5000;
const MAX_WAIT_MS = 10_000;

/**
 * Fetches the page again every 5 seconds, and replaces the parts with `data-live`. Stops while the page is hidden.
 */
function startRefreshing(url: string): void {
  let timer: ReturnType<typeof setTimeout> | undefined;

  function schedule(): void {
    clearTimeout(timer);
    if (!document.hidden) timer = setTimeout(refresh, REFRESH_MS);
  }

  async function refresh(): Promise<void> {
    const page = await fetchPage(url);
    document.body.classList.toggle("stale", page === undefined);
    if (page) takeOver(page);
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

function takeOver(page: Document): void {
  // A part that the open page lacks, such as a chart of the first traffic, needs a reload.
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
    // A chart's table stays open, because only these parts of the chart are replaced.
    const places = ["figcaption", ".plot", "thead", "tbody"];
    if (!part.matches("figure")) replaceContent(part, fresh);
    else
      for (const each of places)
        replaceContent(part.querySelector(each), fresh.querySelector(each));
  }
}

/** Replaces a part, unless the operator works in it: a replacement would take the focus away. */
function replaceContent(part: Element | null, fresh: Element | null): void {
  if (!part || !fresh || part.innerHTML === fresh.innerHTML) return;
  if (part.contains(document.activeElement)) return;
  part.replaceChildren(...fresh.childNodes);
}

const INTERVAL_MS = 5000;

/** Updates relative times while a page is open. */
function refreshTimes(root: Document): void {
  setInterval(() => {
    if (root.hidden) return;
    for (const time of root.querySelectorAll<HTMLTimeElement>("time[data-relative]")) {
      time.textContent = formatRelativeTime(Date.parse(time.dateTime), Date.now());
    }
  }, INTERVAL_MS);
}

// The script of all pages. It shows the values of charts below the pointer, and refreshes numbers and times. Every
// page can be read without it.

showValues(document);
refreshTimes(document);
const { refresh } = document.body.dataset;
if (refresh !== undefined) startRefreshing(refresh);
