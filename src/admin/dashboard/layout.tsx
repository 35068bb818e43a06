import type { Child } from "hono/jsx";
import { withTimeout } from "../../request/timeout.ts";
import { NO_CONTROL } from "../control-client.ts";
import { OperationError } from "../operations.ts";
import { assetPaths } from "./assets.ts";
import { html, Notice, PageDocument, THEMES, ThemeIcon, WAVES } from "./components.ts";
import { type DashboardContext, Form } from "./forms.tsx";
import { RANGES, type Range, readTheme } from "./ranges.ts";

const PAGES = [
  { path: "/_weir/", label: "Overview" },
  { path: "/_weir/rules", label: "Rules" },
  { path: "/_weir/clients", label: "Clients" },
  { path: "/_weir/explain", label: "Explain" },
  { path: "/_weir/overrides", label: "Overrides" },
  { path: "/_weir/audit", label: "Audit" },
] as const;

/**
 * The messages after a change. The address of the next page has only the name of a message, so that no
 * link can show an operator a text of its author.
 */
const MESSAGES = {
  reset: "The client's counts and its ban are removed.",
  "ban-lifted": "The client's ban is lifted. Its counts are unchanged.",
  override: "The override is set. It holds everywhere within 15 seconds.",
  removed: "The override is removed. That holds everywhere within 15 seconds.",
  gone: "That override had ended already.",
} as const;

export type Message = keyof typeof MESSAGES;

type Status = 200 | 400 | 403 | 404 | 503;

interface PageProps {
  readonly title: string;
  /** Paths of the pages above this page, for the navigation; the page itself otherwise. */
  readonly section: (typeof PAGES)[number]["path"] | undefined;
  /** From which address the page's script refreshes the parts with `data-live`; undefined: it does not. */
  readonly refresh?: string;
  readonly children?: Child;
}

/** Answers with a page of the dashboard. */
export function page(c: DashboardContext, props: PageProps, status: Status = 200) {
  const { title, section, refresh, children } = props;
  const done = c.req.query("done") ?? "";
  const message = Object.hasOwn(MESSAGES, done) ? MESSAGES[done as Message] : undefined;
  const document = PageDocument({
    title,
    htmlData: html` data-theme="${readTheme(c)}"`,
    bodyData: refresh === undefined ? undefined : html` data-refresh="${refresh}"`,
    head: html`<link rel="icon" href="${assetPaths.icon}" type="image/svg+xml">
<link rel="stylesheet" href="${assetPaths.style}">
<script src="${assetPaths.script}" defer></script>`,
    brand: html`<a class="brand" href="/_weir/">${WAVES}Weir</a>`,
    navLabel: "Pages",
    nav: PAGES.map(({ path, label }) => {
      return html`<a href="${path}"${path === section && html` aria-current="page"`}>${label}</a>`;
    }),
    themes: <ThemeForm c={c} />,
    children: html`${message !== undefined && Notice({ kind: "good", role: "status", children: message })}${children}`,
    footer: <Footer c={c} />,
  });
  return c.html(document, status);
}

function ThemeForm({ c }: { c: DashboardContext }) {
  return (
    <Form c={c} class="themes" action="/_weir/theme">
      <input type="hidden" name="back" value={c.req.method === "GET" ? backOf(c) : "/_weir/"} />
      {THEMES.map(({ id, label, path }) => (
        <button
          type="submit"
          name="theme"
          value={id}
          title={label}
          aria-label={label}
          aria-pressed={readTheme(c) === id}
        >
          <ThemeIcon path={path} />
        </button>
      ))}
    </Form>
  );
}

/** Returns the path and the query of this page, without the message about the last change. */
function backOf(c: DashboardContext): string {
  const url = new URL(c.req.url);
  url.searchParams.delete("done");
  return url.pathname + url.search;
}

function Footer({ c }: { c: DashboardContext }) {
  const { actor, role, csrf } = c.var;
  return (
    <>
      <span>
        Signed in as <b>{actor}</b>
        {role === "read" && " (read only)"}
      </span>
      <span class="grow">All times are UTC.</span>
      {csrf !== "" && (
        <Form c={c} action="/_weir/logout">
          <button type="submit" class="quiet">
            Log out
          </button>
        </Form>
      )}
    </>
  );
}

/** Answers with a page that says why something was not possible. */
export function faultPage(c: DashboardContext, title: string, fault: string, status: Status) {
  const children = (
    <>
      <h1>{title}</h1>
      <Notice kind="bad" role="alert">
        {fault}
      </Notice>
      <p>
        {status === 400 && "Go back in your browser: it has kept what you entered. "}
        <a href="/_weir/">To the overview</a> · <a href="/_weir/overrides">To the overrides</a> ·{" "}
        <a href="/_weir/audit">To the audit list</a>
      </p>
    </>
  );
  return page(c, { title, section: undefined, children }, status);
}

/** Links to the same page with other times. */
export function RangeSwitch({ path, range }: { path: string; range: Range }) {
  return (
    <nav class="switch" aria-label="Time">
      {RANGES.map(({ id, label }) => (
        <a href={`${path}?range=${id}`} aria-current={id === range.id ? "true" : undefined}>
          {label}
        </a>
      ))}
    </nav>
  );
}

/** Says why a part of a page is missing. */
export function Unavailable({ what, fault }: { what: string; fault: string }) {
  return (
    <Notice kind="warning">
      <p>
        <b>{what} cannot be shown.</b> {fault}
      </p>
      {fault === NO_CONTROL && (
        <p>
          Export the class <code>ControlObject</code> from the Worker, bind it as{" "}
          <code>WEIR_CONTROL</code> in <code>wrangler.toml</code>, add a migration, and deploy. The
          page docs/guides/upgrading.md has the lines.
        </p>
      )}
    </Notice>
  );
}

/** The result of an operation that may fail, so that a page can show what it has. */
export type Attempt<T> =
  | { readonly value: T; readonly fault?: undefined }
  | { readonly value?: undefined; readonly fault: string };

/** How long a page waits for an operation, in milliseconds. */
const MAX_WAIT_MS = 3000;

const NO_ANSWER = "The control object does not answer. Limits are still enforced.";

/** Awaits an operation for at most three seconds. Never rejects. */
export async function attempt<T>(operation: () => Promise<T>): Promise<Attempt<T>> {
  try {
    const result = operation().then((value): Attempt<T> => ({ value }));
    return await withTimeout(result, MAX_WAIT_MS, () => ({ fault: NO_ANSWER }));
  } catch (error) {
    // The messages of unexpected errors may have secrets.
    return { fault: error instanceof OperationError ? error.message : NO_ANSWER };
  }
}
