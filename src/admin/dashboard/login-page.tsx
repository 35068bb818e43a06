import { LOGIN_STYLE, LOGIN_STYLE_HASH } from "./assets.generated.ts";

/** The faults that a log-in can have; the query of the page has their names. */
const FAULTS = {
  wrong: "This is not the token. Check WEIR_ADMIN_TOKEN or WEIR_ADMIN_READ_TOKEN.",
  locked: "Too many attempts. Try again in a minute.",
  origin: "The form was sent from another site. Enter the token here.",
} as const;

/** This page needs no session, so it cannot load assets. Its style is part of it, and allowed by its hash. */
const POLICY = [
  "default-src 'none'",
  `style-src '${LOGIN_STYLE_HASH}'`,
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join("; ");

export interface LoginPageOptions {
  /** Why the last log-in failed: `wrong`, `locked` or `origin`. Other texts show no fault. */
  readonly fault?: string | undefined;
}

/** Answers with the form that asks for the token. */
export function loginPage({ fault }: LoginPageOptions = {}): Response {
  const message =
    fault !== undefined && Object.hasOwn(FAULTS, fault)
      ? FAULTS[fault as keyof typeof FAULTS]
      : undefined;
  const document = <LoginDocument message={message} />;
  return new Response(`<!doctype html>${document.toString()}`, {
    headers: {
      "Content-Type": "text/html; charset=UTF-8",
      "Content-Security-Policy": POLICY,
    },
  });
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
        <style dangerouslySetInnerHTML={{ __html: LOGIN_STYLE }} />
      </head>
      <body>
        <main>
          <svg viewBox="0 0 24 24" aria-hidden="true">
            <path d="M2 8q2.5-3 5 0t5 0t5 0t5 0M2 13q2.5-3 5 0t5 0t5 0t5 0M2 18q2.5-3 5 0t5 0t5 0t5 0" />
          </svg>
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
