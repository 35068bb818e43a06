import { assetPaths } from "./assets.ts";
import { html, pageDocument, WAVES } from "./components.ts";
import { type DashboardContext, field, primaryButton } from "./forms.ts";

/** The faults of a log-in, by their names in the query. */
const FAULTS = {
  wrong: "This is not the token. Check WEIR_ADMIN_TOKEN or WEIR_ADMIN_READ_TOKEN.",
  locked: "Too many attempts. Try again in a minute.",
  origin: "The form was sent from another site. Enter the token here.",
  form: "The form could not be read. Enter the token here.",
} as const;

/**
 * Answers with the form that asks for the token.
 *
 * @param fault the reason why this log-in failed. By default, the reason of the last log-in, from `fault` in the
 * query
 */
export function loginPage(c: DashboardContext, fault?: keyof typeof FAULTS) {
  const name = fault ?? c.req.query("fault") ?? "";
  const message = Object.hasOwn(FAULTS, name) && FAULTS[name as keyof typeof FAULTS];
  const token = html`<input type="password" name="token" required minlength="32" autocomplete="current-password" autofocus>`;
  const document = pageDocument({
    title: "Log in",
    body: html` class="login"`,
    head: html`<meta name="robots" content="noindex">
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${assetPaths.style}">`,
    content: html`<h1>${WAVES}Weir</h1>
${message && html`<p role="alert" class="notice bad">${message}</p>`}
<form class="card row" method="post" action="/_weir/login">${field("Token", token, "whole")}${primaryButton("Log in")}</form>`,
  });
  return c.html(document, fault ? 400 : 200);
}
