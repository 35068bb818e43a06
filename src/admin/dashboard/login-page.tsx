import { assetPaths } from "./assets.ts";
import { WAVES } from "./components.ts";
import type { DashboardContext } from "./forms.tsx";

/** The faults that a log-in can have; the query of the page has their names. */
const FAULTS = {
  wrong: "This is not the token. Check WEIR_ADMIN_TOKEN or WEIR_ADMIN_READ_TOKEN.",
  locked: "Too many attempts. Try again in a minute.",
  origin: "The form was sent from another site. Enter the token here.",
  form: "The form could not be read. Enter the token here.",
} as const;

/**
 * Answers with the form that asks for the token.
 *
 * @param fault why this log-in failed. By default, `fault` in the query says why the last one failed
 */
export function loginPage(c: DashboardContext, fault?: keyof typeof FAULTS) {
  const name = fault ?? c.req.query("fault") ?? "";
  const message = Object.hasOwn(FAULTS, name) ? FAULTS[name as keyof typeof FAULTS] : undefined;
  const document = <LoginDocument message={message} />;
  return c.html(`<!doctype html>${document.toString()}`, fault ? 400 : 200);
}

function LoginDocument({ message }: { message: string | undefined }) {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="robots" content="noindex" />
        <title>Log in · Weir</title>
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href={assetPaths.loginStyle} />
      </head>
      <body>
        <main>
          {WAVES}
          <h1>Weir</h1>
          {message !== undefined && <p role="alert">{message}</p>}
          <form method="post" action="/_weir/login">
            <label>
              <span>Token</span>
              <input
                type="password"
                name="token"
                required
                minlength={32}
                autocomplete="current-password"
                autofocus
              />
            </label>
            <button type="submit">Log in</button>
          </form>
        </main>
      </body>
    </html>
  );
}
