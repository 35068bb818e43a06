import { Notice } from "./components.tsx";
import type { DashboardContext } from "./context.ts";
import { page } from "./layout.tsx";

/** Answers with a page that says why something was not possible. */
export function faultPage(
  c: DashboardContext,
  title: string,
  fault: string,
  status: 400 | 403 | 404 | 503,
) {
  return page(
    c,
    {
      title,
      section: undefined,
      children: (
        <>
          <h1>{title}</h1>
          <Notice kind="bad" role="alert">
            {fault}
          </Notice>
          <p>
            {status === 400 && "Go back in your browser: it has kept what you entered. "}
            <a href="/_weir/">To the overview</a> · <a href="/_weir/overrides">To the overrides</a>{" "}
            · <a href="/_weir/audit">To the audit list</a>
          </p>
        </>
      ),
    },
    status,
  );
}
