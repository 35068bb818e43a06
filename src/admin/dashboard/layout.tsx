import type { Child } from "hono/jsx";
import { assetPaths } from "./assets.ts";
import { Notice } from "./components.tsx";
import type { DashboardContext } from "./context.ts";
import { flashText } from "./flash.ts";
import { Form } from "./forms.tsx";
import { readTheme, THEMES } from "./ranges.ts";

/** The pages in the navigation. */
const PAGES = [
  { path: "/_weir/", label: "Overview" },
  { path: "/_weir/rules", label: "Rules" },
  { path: "/_weir/clients", label: "Clients" },
  { path: "/_weir/explain", label: "Explain" },
  { path: "/_weir/overrides", label: "Overrides" },
  { path: "/_weir/audit", label: "Audit" },
] as const;

interface PageProps {
  readonly title: string;
  /** Paths of the pages above this page, for the navigation; the page itself otherwise. */
  readonly section: (typeof PAGES)[number]["path"] | undefined;
  /** From which address the page's script refreshes the parts with `data-live`; undefined: it does not. */
  readonly refresh?: string;
  readonly children?: Child;
}

/** Answers with a page of the dashboard. */
export function page(
  c: DashboardContext,
  props: PageProps,
  status: 200 | 400 | 403 | 404 | 503 = 200,
) {
  const document = <Document c={c} {...props} />;
  return c.html(`<!doctype html>${document.toString()}`, status);
}

function Document({ c, title, section, refresh, children }: PageProps & { c: DashboardContext }) {
  const flash = flashText(c.req.query("done"));
  return (
    <html lang="en" data-theme={readTheme(c)}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{`${title} · Weir`}</title>
        <link rel="icon" href={assetPaths.icon} type="image/svg+xml" />
        <link rel="stylesheet" href={assetPaths.style} />
        <script src={assetPaths.script} defer></script>
      </head>
      <body data-refresh={refresh}>
        <a class="skip" href="#main">
          Skip to the content
        </a>
        <Header c={c} section={section} />
        <main id="main" tabindex={-1}>
          {flash && (
            <Notice kind="good" role="status">
              {flash}
            </Notice>
          )}
          {children}
        </main>
        <Footer c={c} />
      </body>
    </html>
  );
}

function Header({ c, section }: { c: DashboardContext; section: PageProps["section"] }) {
  return (
    <header class="top">
      <a class="brand" href="/_weir/">
        <svg viewBox="0 0 24 24" aria-hidden="true">
          <path d="M2 8q2.5-3 5 0t5 0t5 0t5 0M2 13q2.5-3 5 0t5 0t5 0t5 0M2 18q2.5-3 5 0t5 0t5 0t5 0" />
        </svg>
        Weir
      </a>
      <nav aria-label="Pages">
        {PAGES.map(({ path, label }) => (
          <a href={path} aria-current={path === section ? "page" : undefined}>
            {label}
          </a>
        ))}
      </nav>
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
            <svg viewBox="0 0 16 16" aria-hidden="true">
              <path d={path} />
            </svg>
          </button>
        ))}
      </Form>
    </header>
  );
}

function Footer({ c }: { c: DashboardContext }) {
  const { actor, role, csrf } = c.var;
  return (
    <footer>
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
    </footer>
  );
}

/** Returns the path and the query of this page, without the message about the last change. */
function backOf(c: DashboardContext): string {
  const url = new URL(c.req.url);
  url.searchParams.delete("done");
  return url.pathname + url.search;
}
