import { withTimeout } from "../../request/timeout.ts";
import { NO_CONTROL } from "../control-client.ts";
import { OperationError } from "../operations.ts";
import { assetPaths } from "./assets.ts";
import { type Content, type Html, html, notice, pageDocument, WAVES } from "./components.ts";
import { type DashboardContext, form } from "./forms.ts";
import { RANGES, type Range } from "./ranges.ts";

const PAGES = [
  { path: "/_weir/", label: "Overview" },
  { path: "/_weir/rules", label: "Rules" },
  { path: "/_weir/clients", label: "Clients" },
  { path: "/_weir/denials", label: "Denials" },
  { path: "/_weir/explain", label: "Explain" },
  { path: "/_weir/overrides", label: "Overrides" },
  { path: "/_weir/audit", label: "Audit" },
] as const;

/**
 * The messages after a change. The address of the next page has only the name of a message, so that the author of a
 * link cannot show an operator a text.
 */
const MESSAGES = {
  reset: "The client's counts and its ban are removed.",
  "ban-lifted": "The client's ban is lifted. Its counts are unchanged.",
  override: "The override is set. It usually holds everywhere within 15 seconds.",
  removed: "The override is removed. That usually holds everywhere within 15 seconds.",
  gone: "That override had ended already.",
} as const;

export type Message = keyof typeof MESSAGES;

type Status = 200 | 400 | 403 | 404 | 503;

interface Page {
  readonly title: string;
  /** The entry of the navigation to which this page belongs; undefined for none. */
  readonly section: (typeof PAGES)[number]["path"] | undefined;
  /** The address from which the page's script refreshes the parts with `data-live`; undefined for no refresh. */
  readonly refresh?: string;
  readonly content: Html;
}

/** Answers with a page of the dashboard. */
export function page(c: DashboardContext, props: Page, status: Status = 200) {
  const { title, section, refresh, content } = props;
  const done = c.req.query("done") ?? "";
  const message = Object.hasOwn(MESSAGES, done) && MESSAGES[done as Message];
  const links = PAGES.map(({ path, label }) => {
    return html`<a href="${path}"${path === section && html` aria-current="page"`}>${label}</a>`;
  });
  const document = pageDocument({
    title,
    body: refresh === undefined ? undefined : html` data-refresh="${refresh}"`,
    head: html`<link rel="icon" href="${assetPaths.icon}" type="image/svg+xml">
<link rel="stylesheet" href="${assetPaths.style}">
<script src="${assetPaths.script}" defer></script>`,
    header: html`<a class="brand" href="/_weir/">${WAVES}Weir</a><nav class="row" aria-label="Pages">${links}</nav>`,
    content: html`${message && notice("good", message, "status")}${content}`,
    footer: footer(c),
  });
  return c.html(document, status);
}

function footer(c: DashboardContext): Html {
  const { actor, role, csrf } = c.var;
  const logOut = html`<button type="submit">Log out</button>`;
  return html`<footer class="row"><span>Signed in as <b>${actor}</b>${role === "read" && " (read only)"}</span>
<span class="grow">All times are UTC.</span>${csrf !== "" && form(c, { action: "/_weir/logout" }, logOut)}</footer>`;
}

/** Answers with a page that says why an operation failed. */
export function faultPage(c: DashboardContext, title: string, fault: string, status: Status) {
  const content = html`<h1>${title}</h1>${notice("bad", fault, "alert")}
<p>${status === 400 && "Go back in your browser: it has kept what you entered. "}<a href="/_weir/">To the overview</a> ·
<a href="/_weir/overrides">To the overrides</a> · <a href="/_weir/audit">To the audit list</a></p>`;
  return page(c, { title, section: undefined, content }, status);
}

/** The heading of a page, and links to the same page for each range of time. */
export function headingWithRanges(heading: Content, path: string, range: Range): Html {
  const links = RANGES.map(({ id, label }) => {
    const current = id === range.id && html` aria-current="true"`;
    return html`<a href="${path}?range=${id}"${current}>${label}</a>`;
  });
  return html`<div class="row"><h1 class="grow">${heading}</h1><nav class="row switch" aria-label="Time">${links}</nav></div>`;
}

/** A notice that says why a part of a page is missing. */
export function unavailable(what: string, fault: string): Html {
  return notice(
    "warning",
    html`<p><b>${what} cannot be shown.</b> ${fault}</p>${
      fault === NO_CONTROL &&
      html`<p>Export the class <code>ControlObject</code> from the Worker, bind it as <code>WEIR_CONTROL</code>
in <code>wrangler.toml</code>, add a migration, and deploy. The page docs/deploying.md has the lines.</p>`
    }`,
  );
}

/** The result of an operation that may fail. After a failure, a page shows its other parts. */
export type Attempt<T> =
  | { readonly value: T; readonly fault?: undefined }
  | { readonly value?: undefined; readonly fault: string };

/** The maximum time that a page waits for an operation, in milliseconds. */
const MAX_WAIT_MS = 3000;

const NO_ANSWER = "The control object does not answer. Limits are still enforced.";

/** Awaits an operation for at most `MAX_WAIT_MS`. Never rejects. */
export async function attempt<T>(operation: () => Promise<T>): Promise<Attempt<T>> {
  try {
    const result = operation().then((value): Attempt<T> => ({ value }));
    return await withTimeout(result, MAX_WAIT_MS, () => ({ fault: NO_ANSWER }));
  } catch (error) {
    // The message of an unexpected error may contain secrets.
    return { fault: error instanceof OperationError ? error.message : NO_ANSWER };
  }
}
