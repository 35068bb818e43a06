import type { Explanation } from "../../explain/explanation.ts";
import { attempt } from "./attempt.ts";
import type { DashboardContext } from "./context.ts";
import { type DescribedFields, readDescription } from "./explain-input.ts";
import { ExplainedRequestCard } from "./explained-request.tsx";
import { ExplainedResponseCard } from "./explained-response.tsx";
import { ExplainedRuleCard, OtherRules } from "./explained-rule.tsx";
import { readFields } from "./form-input.ts";
import { Form } from "./forms.tsx";
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

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const;

function DescriptionForm({ c, fields }: { c: DashboardContext; fields: DescribedFields }) {
  return (
    <section class="card">
      <h2>Describe a request</h2>
      <Form c={c} class="fields" action="/_weir/explain">
        <label class="field">
          <span>Method</span>
          <input
            name="method"
            value={fields.method}
            list="methods"
            maxlength={32}
            size={8}
            autocomplete="off"
            spellcheck={false}
          />
          <datalist id="methods">
            {METHODS.map((method) => (
              <option value={method} />
            ))}
          </datalist>
        </label>
        <label class="field wide">
          <span>URL or path</span>
          <input
            name="url"
            value={fields.url}
            required
            maxlength={16_384}
            autocomplete="off"
            spellcheck={false}
            placeholder="such as /search?q=tent"
          />
        </label>
        <ClientFields fields={fields} />
        <label class="field whole">
          <span>Header fields, one in each line</span>
          <textarea
            name="headers"
            rows={3}
            autocomplete="off"
            spellcheck={false}
            placeholder="x-api-key: abc"
          >
            {fields.headers}
          </textarea>
        </label>
        <button type="submit" class="primary">
          Explain
        </button>
      </Form>
      <p class="hint">
        The request is only decided, not sent and not counted. The functions in <code>custom</code>{" "}
        are called as for a real request.
      </p>
    </section>
  );
}

function ClientFields({ fields: { ip, country, asn } }: { fields: DescribedFields }) {
  return (
    <>
      <TextField name="ip" label="Client's address" value={ip} hint="203.0.113.7" size={20} />
      <TextField name="country" label="Country" value={country} hint="DE" size={6} />
      <TextField name="asn" label="ASN" value={asn} hint="13335" size={9} />
    </>
  );
}

interface TextFieldProps {
  readonly name: string;
  readonly label: string;
  readonly value: string;
  readonly hint: string;
  readonly size: number;
}

function TextField({ name, label, value, hint, size }: TextFieldProps) {
  return (
    <label class="field">
      <span>{label}</span>
      <input
        name={name}
        value={value}
        placeholder={hint}
        size={size}
        maxlength={64}
        autocomplete="off"
        spellcheck={false}
      />
    </label>
  );
}
