import type { Fault } from "../../config/faults.ts";
import type { ClientEffect, RuleEffect } from "../../overrides/override.ts";
import { readReason } from "../../overrides/override-input.ts";
import { VERIFY_BEFORE_RETRY } from "../control-client.ts";
import { formatEffect } from "../format.ts";
import { invalidInput, setOverrides } from "../input.ts";
import { OperationError } from "../operations.ts";
import { clientPath, foreign, html, notice, rulePath } from "./components.ts";
import { type DashboardContext, type FormFields, form, mayChange, readFields } from "./forms.ts";
import { faultPage, type Message, page } from "./layout.ts";

export function resetClient(c: DashboardContext) {
  return change(c, async (fields) => {
    const { rule, client, why } = targetOf(fields);
    await c.var.operations.reset({ client }, rule, c.var.actor, why);
    return changed(c, clientPath(client, rule), "reset");
  });
}

export function liftBan(c: DashboardContext) {
  return change(c, async (fields) => {
    const { rule, client, why } = targetOf(fields);
    await c.var.operations.liftBan({ client }, rule, c.var.actor, why);
    return changed(c, clientPath(client, rule), "ban-lifted");
  });
}

/** Sets an override. For a dangerous change, answers first with a page that asks for a confirmation. */
export function setOverride(c: DashboardContext) {
  return change(c, async (fields) => {
    const rule = fields.text("rule");
    const [expiresIn, reason] = [fields.text("expiresIn"), fields.text("reason")];
    const client = fields.text("target") === "client" ? fields.text("client") : undefined;
    const effect = client === undefined ? ruleEffectIn(fields) : clientEffectIn(fields);
    const path = client === undefined ? rulePath(rule) : clientPath(client, rule);
    const danger = dangerOf(effect);
    if (danger !== undefined && fields.text("confirmed") !== "yes") {
      return confirmationPage(c, fields, danger, formatEffect(effect), path);
    }
    await setOverrides({ rule, effect, expiresIn, reason, client }, c.var);
    return changed(c, path, "override");
  });
}

/** Removes an override before its end. */
export function removeOverride(c: DashboardContext) {
  return change(c, async (fields) => {
    const { operations, actor } = c.var;
    const removed = await operations.removeOverride(fields.text("id"), actor, whyIn(fields));
    return changed(c, "/_weir/overrides", removed ? "removed" : "gone");
  });
}

const UNCERTAIN = "The change may have been made";

/** Makes a change, or answers with a page that says why the change failed. */
async function change(
  c: DashboardContext,
  make: (fields: FormFields) => Promise<Response>,
): Promise<Response> {
  if (!mayChange(c)) {
    return faultPage(c, "Read only", "This credential may read, but not change anything.", 403);
  }
  try {
    return await make(await readFields(c));
  } catch (error) {
    if (!(error instanceof OperationError))
      return faultPage(c, UNCERTAIN, VERIFY_BEFORE_RETRY, 503);
    const { kind, message } = error;
    if (kind === "uncertain") return faultPage(c, UNCERTAIN, message, 503);
    // If only some of several clients were changed, the kind is `uncertain`.
    return faultPage(c, "Nothing was changed", message, kind === "unavailable" ? 503 : 400);
  }
}

/** Redirects to a page with a message, so that reloading this page does not repeat the change. */
function changed(c: DashboardContext, path: string, message: Message): Response {
  return c.redirect(`${path}${path.includes("?") ? "&" : "?"}done=${message}`, 303);
}

function targetOf(fields: FormFields) {
  return { rule: fields.text("rule"), client: fields.text("client"), why: whyIn(fields) };
}

/** Reads the reason of a change. @throws {OperationError} if it is missing */
function whyIn(fields: FormFields): string {
  const faults: Fault[] = [];
  const why = readReason(fields.text("why"), faults, "The reason");
  if (why === undefined) throw invalidInput(faults);
  return why;
}

// Reads effects from forms. A form has texts in place of numbers. An effect is checked when it is set.

function ruleEffectIn(fields: FormFields): RuleEffect {
  const mode = fields.text("mode");
  const factor = numberIn(fields.text("factor"));
  return { ...(mode !== "" && { mode }), ...(factor !== undefined && { factor }) } as RuleEffect;
}

const LIMIT_FIELD = "limit:";

function clientEffectIn(fields: FormFields): ClientEffect {
  const kind = fields.text("kind");
  const factor = numberIn(fields.text("factor"));
  // A policy without a number keeps its limit.
  const limits = Object.entries(fields.all)
    .filter(([name, text]) => name.startsWith(LIMIT_FIELD) && text !== "")
    .map(([name, text]) => [name.slice(LIMIT_FIELD.length), numberIn(text)]);
  return {
    kind,
    ...(kind === "factor" && { factor }),
    ...(kind === "limits" && { limits: Object.fromEntries(limits) }),
  } as ClientEffect;
}

/** @returns undefined for an empty text; the text itself if it is no number, for the message of the fault */
function numberIn(text: string): number | string | undefined {
  if (text === "") return undefined;
  return /^[+-]?\d+(?:\.\d+)?$/.test(text) ? Number(text) : text;
}

/**
 * Returns the reason why a change needs a confirmation: it stops a limit for all clients, or denies requests that
 * would pass. Undefined if no confirmation is needed.
 */
function dangerOf(effect: ClientEffect | RuleEffect): string | undefined {
  if ("kind" in effect) {
    const denies =
      effect.kind === "blocked" ||
      (effect.kind === "factor" && effect.factor === 0) ||
      (effect.kind === "limits" && Object.values(effect.limits).includes(0));
    return denies
      ? "Every request of this client to which the rule applies will be denied."
      : undefined;
  }
  const { mode, factor = 1 } = effect;
  if (mode === "off") return "The rule will not apply to any request.";
  if (mode === "shadow") return "The rule will deny nothing.";
  if (mode === "enforce") return "The rule will deny requests that are over its limit.";
  return factor < 1 ? "The rule will deny requests that pass today." : undefined;
}

function confirmationPage(
  c: DashboardContext,
  fields: FormFields,
  danger: string,
  effect: string,
  back: string,
) {
  const { csrf: _, ...sent } = fields.all;
  const client = fields.text("client");
  const props = { action: "/_weir/overrides", hidden: { ...sent, confirmed: "yes" } };
  return page(c, {
    title: "Confirm",
    section: "/_weir/overrides",
    content: html`<section class="card">
<h1>Is this what you want?</h1>
${notice("warning", danger)}
<p>Rule <b>${foreign(fields.text("rule"))}</b>${client !== "" && html`, client <bdi class="client">${client}</bdi>`}:
<b>${foreign(effect)}</b>, for ${fields.text("expiresIn")}. Reason: “${foreign(fields.text("reason"))}”.</p>
${form(c, props, html`<button type="submit" class="danger">Yes, set this override</button><a class="button" href="${back}">Cancel</a>`)}
</section>`,
  });
}
