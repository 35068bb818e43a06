import type { Explanation } from "../../explain/explanation.ts";
import { attempt } from "./attempt.ts";
import type { DashboardContext } from "./context.ts";
import { DescriptionForm } from "./explain-form.tsx";
import { type DescribedFields, readDescription } from "./explain-input.ts";
import { ExplainedRequestCard } from "./explained-request.tsx";
import { ExplainedResponseCard } from "./explained-response.tsx";
import { ExplainedRuleCard, OtherRules } from "./explained-rule.tsx";
import { readFields } from "./form-input.ts";
import { page } from "./layout.tsx";
import { Notice } from "./notice.tsx";

/** The page with the form that describes a request. Links can fill in its method and its URL. */
export async function explainPage(c: DashboardContext) {
  const [method, url] = [c.req.query("method") ?? "GET", c.req.query("url") ?? ""];
  const fields = { method, url, headers: "", ip: "", country: "", asn: "" };
  return formPage(c, fields, undefined);
}

/**
 * Explains the described request. The description comes in the body of a POST, so that no address, no log and no
 * history of a browser contains it.
 */
export async function explainedPage(c: DashboardContext) {
  const form = await readFields(c);
  const fields: DescribedFields = {
    method: form.text("method"),
    url: form.text("url"),
    headers: form.text("headers"),
    ip: form.text("ip"),
    country: form.text("country"),
    asn: form.text("asn"),
  };
  const { origin } = new URL(c.req.url);
  const explained = await attempt(async () =>
    c.var.operations.explain(readDescription(fields, origin)),
  );
  const now = Date.now();
  return formPage(
    c,
    fields,
    explained.value ? (
      <Result explanation={explained.value} now={now} />
    ) : (
      <Notice kind="bad" role="alert">
        {explained.fault}
      </Notice>
    ),
  );
}

function formPage(c: DashboardContext, fields: DescribedFields, result: unknown) {
  return page(c, {
    title: "Explain",
    section: "/_weir/explain",
    children: (
      <>
        <h1>Explain</h1>
        <DescriptionForm c={c} fields={fields} />
        {result}
      </>
    ),
  });
}

function Result({ explanation, now }: { explanation: Explanation; now: number }) {
  const { request, rules, response } = explanation;
  const applied = rules.filter(({ applies }) => applies);
  const others = rules.filter(({ applies }) => !applies);
  return (
    <>
      <Verdict explanation={explanation} />
      <ExplainedRequestCard request={request} />
      {applied.map((rule) => (
        <ExplainedRuleCard rule={rule} now={now} />
      ))}
      {others.length > 0 && <OtherRules rules={others} />}
      <ExplainedResponseCard response={response} />
    </>
  );
}

const VERDICTS = {
  allowed: { kind: "good", text: "The request would be allowed." },
  limited: { kind: "bad", text: "The request would be denied." },
  undecided: { kind: "warning", text: "The store cannot decide the request." },
  unmatched: { kind: "info", text: "No rule applies to the request." },
} as const;

function Verdict({ explanation }: { explanation: Explanation }) {
  const { outcome, response, storeFailure } = explanation;
  const { kind, text } = VERDICTS[outcome];
  return (
    <Notice kind={kind} role="status">
      <p>
        <b>{text}</b>{" "}
        {response.status === undefined
          ? "Weir would forward it."
          : `Weir would answer it with ${response.status}.`}
      </p>
      {storeFailure !== undefined && <p>The counts cannot be read: {storeFailure}.</p>}
      <p>Nothing was counted, and no ban has begun.</p>
    </Notice>
  );
}
