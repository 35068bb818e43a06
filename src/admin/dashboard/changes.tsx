import { VERIFY_BEFORE_RETRY } from "../control-client.ts";
import { formatEffect } from "../format.ts";
import { OperationError } from "../operations.ts";
import { clientPath, Notice, rulePath } from "./components.ts";
import {
  type DashboardContext,
  dangerOf,
  Form,
  type FormFields,
  mayChange,
  readFields,
  readOverrideChange,
  whyIn,
} from "./forms.tsx";
import { faultPage, type Message, page } from "./layout.tsx";

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

/** Sets an override. A dangerous change is first shown on a page that asks for a confirmation. */
export function setOverride(c: DashboardContext) {
  return change(c, async (fields) => {
    const override = readOverrideChange(fields, c.var.config.rules, Date.now());
    const danger = dangerOf(override);
    const path =
      override.client === undefined
        ? rulePath(override.rule)
        : clientPath(override.client, override.rule);
    if (danger !== undefined && fields.text("confirmed") !== "yes") {
      return confirmationPage(c, {
        fields,
        danger,
        effect: formatEffect(override.effect),
        back: path,
      });
    }
    const result = await c.var.operations.setOverride(override, c.var.actor);
    if (!result.ok) throw new OperationError("invalid", FULL);
    return changed(c, path, "override");
  });
}

const FULL = "There are 10,000 overrides, which is the maximum. Remove some first.";

/** Removes an override before its end. */
export function removeOverride(c: DashboardContext) {
  return change(c, async (fields) => {
    const removed = await c.var.operations.removeOverride(
      fields.text("id"),
      c.var.actor,
      whyIn(fields),
    );
    return changed(c, "/_weir/overrides", removed ? "removed" : "gone");
  });
}

const UNCERTAIN = "The change may have been made";

/** Makes a change, or answers with a page that says why it was not possible. */
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
    // A change for several clients that failed says which of them were changed.
    return faultPage(c, "Nothing was changed", message, kind === "unavailable" ? 503 : 400);
  }
}

/** Redirects to a page with a message, so that reloading it does not repeat the change. */
function changed(c: DashboardContext, path: string, message: Message): Response {
  return c.redirect(`${path}${path.includes("?") ? "&" : "?"}done=${message}`, 303);
}

function targetOf(fields: FormFields) {
  return { rule: fields.text("rule"), client: fields.text("client"), why: whyIn(fields) };
}

interface ConfirmationProps {
  readonly fields: FormFields;
  readonly danger: string;
  readonly effect: string;
  readonly back: string;
}

function confirmationPage(
  c: DashboardContext,
  { fields, danger, effect, back }: ConfirmationProps,
) {
  const { csrf: _, ...hidden } = fields.all;
  const client = fields.text("client");
  return page(c, {
    title: "Confirm",
    section: "/_weir/overrides",
    children: (
      <section class="card confirmation">
        <h1>Is this what you want?</h1>
        <Notice kind="warning">{danger}</Notice>
        <p>
          Rule{" "}
          <b>
            <bdi>{fields.text("rule")}</bdi>
          </b>
          {client !== "" && (
            <>
              , client <bdi class="client">{client}</bdi>
            </>
          )}
          :{" "}
          <b>
            <bdi>{effect}</bdi>
          </b>
          , for {fields.text("expiresIn")}. Reason: “<bdi>{fields.text("reason")}</bdi>”.
        </p>
        <Form
          c={c}
          class="buttons"
          action="/_weir/overrides"
          hidden={{ ...hidden, confirmed: "yes" }}
        >
          <button type="submit" class="danger">
            Yes, set this override
          </button>
          <a class="button" href={back}>
            Cancel
          </a>
        </Form>
      </section>
    ),
  });
}
