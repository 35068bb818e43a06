import { parseAddress } from "../../config/address.ts";
import {
  type DescribedRequest,
  type ExplainedBan,
  type ExplainedCondition,
  type ExplainedCounter,
  type ExplainedKeyElement,
  type ExplainedRequest,
  type ExplainedResponse,
  type ExplainedRule,
  type Explanation,
  shownText,
} from "../../explain/explanation.ts";
import { ExplainBody } from "../api.ts";
import { formatCount, formatDuration, formatEffect, formatTime } from "../format.ts";
import { check, invalidInput } from "../input.ts";
import {
  ClientLink,
  type Column,
  ExactTime,
  Facts,
  ModeBadge,
  Notice,
  RuleLink,
  Table,
} from "./components.ts";
import { type DashboardContext, Form, readFields, TextField } from "./forms.tsx";
import { attempt, page } from "./layout.tsx";

/** What an operator has entered to describe a request. */
interface DescribedFields {
  readonly method: string;
  readonly url: string;
  /** One header in each line. */
  readonly headers: string;
  readonly ip: string;
  readonly country: string;
  readonly asn: string;
}

/**
 * Reads the description of a request.
 *
 * @param origin the origin of the dashboard, for a URL that is only a path
 * @throws {OperationError} if a field has a value that is not allowed. The message contains none of the values
 */
function readDescription(
  { method, url, headers, ip, country, asn }: DescribedFields,
  origin: string,
): DescribedRequest {
  const lines = fieldsIn(headers);
  if (ip !== "" && !parseAddress(ip)) {
    throw invalidInput([
      { path: "IP address", message: "must be an address, such as 203.0.113.7 or 2001:db8::7." },
    ]);
  }
  if (ip !== "") lines.set("cf-connecting-ip", ip);
  const number = /^(?:AS)?(\d{1,10})$/i.exec(asn)?.[1];
  if (asn !== "" && number === undefined) {
    throw invalidInput([{ path: "ASN", message: "must be a number, such as 13335." }]);
  }
  if (country !== "" && !/^[a-z][a-z\d]$/i.test(country)) {
    throw invalidInput([
      { path: "Country", message: "must be a code of two letters, such as DE." },
    ]);
  }
  const described = check(ExplainBody, {
    method: (method || "GET").toUpperCase(),
    url: url.startsWith("/") && !url.startsWith("//") ? origin + url : url,
    headers: Object.fromEntries(lines),
    cf: {
      ...(country !== "" && { country: country.toUpperCase() }),
      ...(number !== undefined && { asn: Number(number) }),
    },
  });
  const { headers: sent = {}, cf = {} } = described;
  return { method: described.method, url: described.url, headers: sent, cf };
}

/** Returns the headers in some lines. A header that was entered twice has both values, as in HTTP. */
function fieldsIn(text: string): Map<string, string> {
  const fields = new Map<string, string>();
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    const colon = line.indexOf(":");
    if (colon < 1) {
      const message = `must have a name and a colon in each line, as in x-api-key: abc. Line ${index + 1} has none.`;
      throw invalidInput([{ path: "Headers", message }]);
    }
    const name = line.slice(0, colon).trim().toLowerCase();
    const value = line.slice(colon + 1).trim();
    const before = fields.get(name);
    const separator = name === "cookie" ? "; " : ", ";
    fields.set(name, before === undefined ? value : before + separator + value);
  }
  return fields;
}

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const;

/** The form that describes a request. */
function DescriptionForm({ c, fields }: { c: DashboardContext; fields: DescribedFields }) {
  return (
    <section class="card">
      <h2>Describe a request</h2>
      <Form c={c} class="fields" action="/_weir/explain">
        <TextField label="Method" name="method" value={fields.method} list="methods" size={8}>
          <datalist id="methods">
            {METHODS.map((method) => (
              <option value={method} />
            ))}
          </datalist>
        </TextField>
        <TextField
          label="URL or path"
          name="url"
          value={fields.url}
          isWide
          required
          maxlength={16_384}
          placeholder="such as /search?q=tent"
        />
        <TextField label="Client's address" name="ip" value={fields.ip} placeholder="203.0.113.7" />
        <TextField
          label="Country"
          name="country"
          value={fields.country}
          placeholder="DE"
          size={6}
        />
        <TextField label="ASN" name="asn" value={fields.asn} placeholder="13335" size={9} />
        <label class="field whole">
          <span>Headers, one in each line</span>
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

/** A text of a request or a configuration, as code. */
function Code({ text }: { text: string }) {
  return (
    <code>
      <bdi>{text}</bdi>
    </code>
  );
}

const RESULTS = { holds: "✓ holds", fails: "× fails", unknown: "? unknown" } as const;

const CONDITION_COLUMNS: readonly Column<ExplainedCondition>[] = [
  { label: "Condition", cell: ({ field }) => <Code text={field} /> },
  { label: "The request has", class: "match", cell: ({ actual }) => <bdi>{actual}</bdi> },
  { label: "The rule demands", class: "match", cell: ({ expected }) => <bdi>{expected}</bdi> },
  {
    label: "Result",
    cell: ({ result, note }) => (
      <>
        <b>{RESULTS[result]}</b>
        {note !== undefined && (
          <p class="hint">
            <bdi>{note}</bdi>
          </p>
        )}
      </>
    ),
  },
];

interface ConditionTableProps {
  readonly rule: string;
  readonly conditions: readonly ExplainedCondition[];
}

/** The tested conditions of a rule, in their order. */
function ConditionTable({ rule, conditions }: ConditionTableProps) {
  if (conditions.length === 0) return <p class="none">The rule applies to every request.</p>;
  const caption = `Conditions of ${rule}`;
  return <Table caption={caption} cards columns={CONDITION_COLUMNS} rows={conditions} />;
}

/** The columns of the counters of a client under a rule, and of what the request would store. */
function counterColumns(now: number): Column<ExplainedCounter>[] {
  return [
    {
      label: "Policy",
      cell: ({ policy, shard }) => (
        <>
          <bdi>{policy}</bdi>
          {shard !== undefined && <small> shard {shard}</small>}
        </>
      ),
    },
    {
      label: "Limit",
      number: true,
      cell: ({ capacity, limit }) => (
        <>
          {formatCount(capacity)}
          {capacity !== limit && <small> ({formatCount(limit)} in each window)</small>}
        </>
      ),
    },
    {
      label: "Count",
      number: true,
      cell: ({ count, countAfter }) =>
        formatCount(count) + (countAfter === undefined ? "" : ` → ${formatCount(countAfter)}`),
    },
    {
      label: "Window",
      cell: ({ windowStart, windowEnd }) => (
        <>
          {formatTime(windowStart)} to <ExactTime at={windowEnd} now={now} />
        </>
      ),
    },
    {
      label: "Stored under",
      class: "key",
      cell: ({ storedKey, expiresAt }) => (
        <>
          <Code text={storedKey} />
          {expiresAt !== undefined && <small> until {formatTime(expiresAt)}</small>}
        </>
      ),
    },
  ];
}

/** A rule that applies: its conditions, the client's key, and the counters. */
function ExplainedRuleCard({ rule, now }: { rule: ExplainedRule; now: number }) {
  const { mode, why, exceeds, conditions, key, client, tier, cost, costSource } = rule;
  const { counters, banMs = 0, newBan } = rule;
  return (
    <section class="card explained">
      <h2>
        <RuleLink rule={rule.rule} />
        <ModeBadge mode={mode} />
        {exceeds && <span class="badge limited">over its limit</span>}
        {banMs > 0 && <span class="badge limited">banned for {formatDuration(banMs)}</span>}
      </h2>
      <p class="hint">{why}</p>
      <ConditionTable rule={rule.rule} conditions={conditions} />
      <h3>Client</h3>
      {client !== undefined && <ClientLink client={client} rule={rule.rule} />}
      <KeyList elements={key} />
      <p class="hint">
        {cost !== undefined && `Costs ${formatCount(cost)} (${costSource}). `}
        {tier !== undefined && `The client's tier is ${tier}.`}
      </p>
      <OverrideText rule={rule} />
      {counters && (
        <Table
          caption={`Counters of ${rule.rule}`}
          cards
          columns={counterColumns(now)}
          rows={counters}
        />
      )}
      {newBan && <NewBan ban={newBan} />}
    </section>
  );
}

/** The rules that do not apply, each with the condition that fails. */
function OtherRules({ rules }: { rules: readonly ExplainedRule[] }) {
  return (
    <section class="card explained">
      <h2>Rules that do not apply</h2>
      {rules.map((rule) => (
        <details>
          <summary>
            <bdi>{rule.rule}</bdi>
            <small> {reasonOf(rule)}</small>
          </summary>
          <ConditionTable rule={rule.rule} conditions={rule.conditions} />
          <OverrideText rule={rule} />
          <p class="hint">
            <RuleLink rule={rule.rule} />
          </p>
        </details>
      ))}
    </section>
  );
}

/** Returns the condition because of which a rule does not apply. */
function reasonOf({ conditions, why }: ExplainedRule): string {
  const last = conditions.at(-1);
  return last ? `${last.field}: ${last.actual}` : why;
}

function KeyList({ elements }: { elements: readonly ExplainedKeyElement[] }) {
  return (
    <ul class="plain">
      {elements.map(({ alternatives, isFallback }) => (
        <li>
          {alternatives.map(({ part, result, from, value }, index) => (
            <>
              {index > 0 && "; "}
              <Code text={part} />{" "}
              {result === "used" ? (
                <>
                  is{" "}
                  <b>
                    <bdi>{value}</bdi>
                  </b>
                  , from {from}
                </>
              ) : (
                `is absent, because ${from}`
              )}
            </>
          ))}
          {isFallback && "; so the client's address is used"}.
        </li>
      ))}
    </ul>
  );
}

function OverrideText({ rule: { override } }: { rule: ExplainedRule }) {
  if (!override) return null;
  return (
    <p class="hint">
      <span class="badge override">override</span> <bdi>{formatEffect(override.effect)}</bdi>, until{" "}
      {formatTime(override.expiresAt)}: “<bdi>{override.reason}</bdi>” – <bdi>{override.by}</bdi>
    </p>
  );
}

function NewBan({ ban: { until, isAtLeast, storedKey } }: { ban: ExplainedBan }) {
  return (
    <p class="hint">
      The request would begin a ban{isAtLeast && " of at least this length"}: until{" "}
      {formatTime(until)}, stored under <Code text={storedKey} />.
    </p>
  );
}

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

/** The maximum number of readings of a path that are listed. */
const MAX_READINGS = 20;

/** The form of a request that rules match. */
function ExplainedRequestCard({ request }: { request: ExplainedRequest }) {
  const { method, sentMethod, isPreflight, host, path, variants, isUnambiguous, client } = request;
  const others = variants.filter((variant) => variant !== path);
  return (
    <section class="card">
      <h2>The request that rules match</h2>
      <Facts
        facts={[
          [
            "Method",
            <>
              {method}
              {sentMethod !== method && ` (sent as ${sentMethod})`}
              {isPreflight && <span class="badge">CORS preflight</span>}
            </>,
          ],
          ["Host", host],
          ["Path", shownText(path)],
          ["Client's address", client],
        ]}
      />
      {!isUnambiguous && (
        <p class="hint">
          Origins may read this path in different ways. Rules match each of them, and exceptions
          none.
        </p>
      )}
      {others.length > 0 && (
        <details>
          <summary>Other readings of the path</summary>
          <ul class="plain">
            {others.slice(0, MAX_READINGS).map((variant) => (
              <li>
                <Code text={shownText(variant)} />
              </li>
            ))}
          </ul>
          {others.length > MAX_READINGS && <p class="hint">And more.</p>}
        </details>
      )}
    </section>
  );
}

/** What the client and the origin would get. */
function ExplainedResponseCard({ response }: { response: ExplainedResponse }) {
  const { status, headers, body, originHeaders = [] } = response;
  return (
    <section class="card">
      <h2>The response</h2>
      {status === undefined ? (
        <p class="hint">The origin answers. Weir adds the headers below to its response.</p>
      ) : (
        <p class="hint">
          Weir answers with status <b>{status}</b>.
        </p>
      )}
      <Headers caption="Headers that Weir sets" headers={headers} />
      {body !== undefined && (
        <section class="scroll" tabindex={0} aria-label="Body">
          <pre>
            <bdi>{body}</bdi>
          </pre>
        </section>
      )}
      {originHeaders.length > 0 && (
        <Headers caption="Headers that the origin gets" headers={originHeaders} />
      )}
    </section>
  );
}

const HEADER_COLUMNS: readonly Column<ExplainedResponse["headers"][number]>[] = [
  { label: "Header", cell: ([name]) => <Code text={name} /> },
  { label: "Value", class: "match", cell: ([, value]) => <bdi>{shownText(value)}</bdi> },
];

interface HeadersProps {
  readonly caption: string;
  readonly headers: ExplainedResponse["headers"];
}

function Headers({ caption, headers }: HeadersProps) {
  if (headers.length === 0) return <p class="none">{caption}: none.</p>;
  return <Table caption={caption} showsCaption columns={HEADER_COLUMNS} rows={headers} />;
}
