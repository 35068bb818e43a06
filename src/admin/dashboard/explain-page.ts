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
import { check, invalidField } from "../input.ts";
import {
  badge,
  type Column,
  clientLink,
  code,
  exactTime,
  facts,
  foreign,
  type Html,
  html,
  modeBadge,
  notice,
  ruleLink,
  table,
} from "./components.ts";
import {
  type DashboardContext,
  field,
  form,
  primaryButton,
  readFields,
  textField,
} from "./forms.ts";
import { attempt, page } from "./layout.ts";

/** The fields in which an operator describes a request. Each line of `headers` is a header. */
const FIELDS = ["method", "url", "headers", "ip", "country", "asn"] as const;

type DescribedFields = Readonly<Record<(typeof FIELDS)[number], string>>;

/**
 * Reads the description of a request.
 *
 * @param origin the origin of the dashboard, for a URL that is only a path
 * @throws {OperationError} if a field has a forbidden value. The message contains no value
 */
function readDescription(
  { method, url, headers, ip, country, asn }: DescribedFields,
  origin: string,
): DescribedRequest {
  const lines = headersIn(headers);
  const isAddress = ip === "" || parseAddress(ip) !== undefined;
  demand(isAddress, "IP address", "must be an address, such as 203.0.113.7 or 2001:db8::7.");
  demand(/^(?:(?:AS)?\d{1,10})?$/i.test(asn), "ASN", "must be a number, such as 13335.");
  const isCountry = /^(?:[a-z][a-z\d])?$/i.test(country);
  demand(isCountry, "Country", "must be a code of two letters, such as DE.");
  if (ip !== "") lines.set("cf-connecting-ip", ip);
  const described = check(ExplainBody, {
    method: (method || "GET").toUpperCase(),
    url: url.startsWith("/") && !url.startsWith("//") ? origin + url : url,
    headers: Object.fromEntries(lines),
    cf: {
      ...(country !== "" && { country: country.toUpperCase() }),
      ...(asn !== "" && { asn: Number(asn.replace(/^AS/i, "")) }),
    },
  });
  const { headers: sent = {}, cf = {} } = described;
  return { method: described.method, url: described.url, headers: sent, cf };
}

function demand(holds: boolean, path: string, message: string): void {
  if (!holds) throw invalidField(path, message);
}

/** Returns the headers in some lines. A header in two lines has both values, as in HTTP. */
function headersIn(text: string): Map<string, string> {
  const headers = new Map<string, string>();
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    const colon = line.indexOf(":");
    const form = "must have a name and a colon in each line, as in x-api-key: abc.";
    demand(colon > 0, "Headers", `${form} Line ${index + 1} has none.`);
    const name = line.slice(0, colon).trim().toLowerCase();
    const value = line.slice(colon + 1).trim();
    const before = headers.get(name);
    const separator = name === "cookie" ? "; " : ", ";
    headers.set(name, before === undefined ? value : before + separator + value);
  }
  return headers;
}

/** The form that describes a request. */
function descriptionForm(c: DashboardContext, fields: DescribedFields): Html {
  const textArea = html`<textarea name="headers" rows="3" autocomplete="off" spellcheck="false" placeholder="x-api-key: abc">${fields.headers}</textarea>`;
  const text = (
    label: string,
    name: keyof DescribedFields,
    placeholder: string,
    more: Html | false = false,
  ) => textField({ label, name, value: fields[name], placeholder, more });
  const content = [
    text("Method", "method", "GET", html` size="8"`),
    textField({
      label: "URL or path",
      name: "url",
      value: fields.url,
      width: "wide",
      maxlength: 16_384,
      placeholder: "such as /search?q=tent",
      more: html` required`,
    }),
    text("Client's address", "ip", "203.0.113.7"),
    text("Country", "country", "DE", html` size="6"`),
    text("ASN", "asn", "13335", html` size="9"`),
    field("Headers, one in each line", textArea, "whole"),
    primaryButton("Explain"),
  ];
  return html`<section class="card"><h2>Describe a request</h2>
${form(c, { action: "/_weir/explain" }, content)}
<p class="note">The request is only decided, not sent and not counted. The functions in <code>custom</code> are called
as for a real request.</p></section>`;
}

const RESULTS = { holds: "✓ holds", fails: "× fails", unknown: "? unknown" } as const;

/** The tested conditions of a rule, in the order of the tests. */
function conditionTable({ rule, conditions }: ExplainedRule): Html {
  if (conditions.length === 0) return html`<p class="note">The rule applies to every request.</p>`;
  return table<ExplainedCondition>({
    caption: `Conditions of ${rule}`,
    cards: true,
    rows: conditions,
    columns: [
      { label: "Condition", cell: (each) => code(each.field) },
      { label: "The request has", class: "any", cell: ({ actual }) => foreign(actual) },
      { label: "The rule demands", class: "any", cell: ({ expected }) => foreign(expected) },
      {
        label: "Result",
        cell: ({ result, note }) =>
          html`<b>${RESULTS[result]}</b>${note !== undefined && html`<p class="note">${foreign(note)}</p>`}`,
      },
    ],
  });
}

/** The counters of a client under a rule, and the values that the request would store. */
function counterTable(rule: string, counters: readonly ExplainedCounter[], now: number): Html {
  return table<ExplainedCounter>({
    caption: `Counters of ${rule}`,
    cards: true,
    rows: counters,
    columns: [
      {
        label: "Policy",
        cell: ({ policy, shard }) =>
          html`${foreign(policy)}${shard !== undefined && html`<small> shard ${shard}</small>`}`,
      },
      {
        label: "Limit",
        number: true,
        cell: ({ capacity, limit }) =>
          html`${formatCount(capacity)}${capacity !== limit && html`<small> (${formatCount(limit)} in each window)</small>`}`,
      },
      {
        label: "Count",
        number: true,
        cell: ({ count, countAfter }) =>
          formatCount(count) + (countAfter === undefined ? "" : ` → ${formatCount(countAfter)}`),
      },
      {
        label: "Window",
        cell: ({ windowStart, windowEnd, concurrent }) =>
          concurrent
            ? "counts open requests"
            : html`${formatTime(windowStart)} to ${exactTime(windowEnd, now)}`,
      },
      {
        label: "Stored under",
        class: "any",
        cell: ({ storedKey, expiresAt }) =>
          html`${code(storedKey)}${expiresAt !== undefined && html`<small> until ${formatTime(expiresAt)}</small>`}`,
      },
    ],
  });
}

/** A rule that applies: its conditions, the client's key, and the counters. */
function appliedRule(explained: ExplainedRule, now: number): Html {
  const { rule, mode, why, exceeds, maxCost, key, client, tier, cost, costSource } = explained;
  const { counters, waitMs, async, banMs = 0, newBan, limitSource } = explained;
  return html`<section class="card">
<h2>${ruleLink(rule)}${modeBadge(mode)}${exceeds && badge("limited", "over its limit")}${
    banMs > 0 && badge("limited", `banned for ${formatDuration(banMs)}`)
  }</h2>
<p class="note">${why}</p>
${conditionTable(explained)}
<h3>Client</h3>
${client !== undefined && clientLink(client, rule)}
<ul class="any">${key.map(keyElement)}</ul>
<p class="note">${cost !== undefined && `Costs ${formatCount(cost)} (${costSource}). `}${
    maxCost !== undefined && `It never fits: at most ${formatCount(maxCost)} pass at once. `
  }${waitMs !== undefined && `Waits up to ${formatDuration(waitMs)} for its turn. `}${
    async &&
    "A request may pass before the store has decided: over the limit, once for each isolate and window. "
  }${tier !== undefined && `The client's tier is ${tier}. `}${
    limitSource !== undefined && `The client's own limit: ${limitSource}.`
  }</p>
${overrideNote(explained)}
${counters && counterTable(rule, counters, now)}
${newBan && banNote(newBan)}
</section>`;
}

/** The rules that do not apply, each with its failing condition. */
function otherRules(rules: readonly ExplainedRule[]): Html {
  const items = rules.map((explained) => {
    const { rule, conditions, why } = explained;
    const last = conditions.at(-1);
    const reason = last ? `${last.field}: ${last.actual}` : why;
    return html`<details><summary>${foreign(rule)}<small> ${reason}</small></summary>
${conditionTable(explained)}${overrideNote(explained)}<p class="note">${ruleLink(rule)}</p></details>`;
  });
  return html`<section class="card"><h2>Rules that do not apply</h2>${items}</section>`;
}

function keyElement({ alternatives, isFallback }: ExplainedKeyElement): Html {
  const all = alternatives.map(({ part, result, from, value = "" }, index) => {
    const source =
      result === "used"
        ? html`is <b>${foreign(value)}</b>, from ${from}`
        : `is absent, because ${from}`;
    return html`${index > 0 && "; "}${code(part)} ${source}`;
  });
  return html`<li>${all}${isFallback && "; so the client's address is used"}.</li>`;
}

function overrideNote({ override }: ExplainedRule): Html | undefined {
  if (!override) return undefined;
  const { effect, expiresAt, reason, by } = override;
  return html`<p class="note">${badge("override")} ${foreign(formatEffect(effect))}, until ${formatTime(expiresAt)}:
“${foreign(reason)}” – ${foreign(by)}</p>`;
}

function banNote({ until, isAtLeast, storedKey }: ExplainedBan): Html {
  return html`<p class="note">The request would begin a ban${isAtLeast && " of at least this length"}: until
${formatTime(until)}, stored under ${code(storedKey)}.</p>`;
}

/** The page with the form that describes a request. Links can fill in its method and its URL. */
export async function explainPage(c: DashboardContext) {
  const [method, url] = [c.req.query("method") ?? "GET", c.req.query("url") ?? ""];
  return formPage(c, { method, url, headers: "", ip: "", country: "", asn: "" });
}

/**
 * Explains the described request. The description comes in the body of a POST, so that it is in no address, no log
 * and no browser history.
 */
export async function explainedPage(c: DashboardContext) {
  const { text } = await readFields(c);
  const entries = FIELDS.map((name) => [name, text(name)]);
  const fields: DescribedFields = Object.fromEntries(entries);
  const { origin } = new URL(c.req.url);
  const { value, fault } = await attempt(async () =>
    c.var.operations.explain(readDescription(fields, origin)),
  );
  return formPage(c, fields, value ? resultOf(value, Date.now()) : notice("bad", fault, "alert"));
}

function formPage(c: DashboardContext, fields: DescribedFields, result?: Html) {
  return page(c, {
    title: "Explain",
    section: "/_weir/explain",
    content: html`<h1>Explain</h1>${descriptionForm(c, fields)}${result}`,
  });
}

function resultOf(explanation: Explanation, now: number): Html {
  const { request, rules, response } = explanation;
  const others = rules.filter(({ applies }) => !applies);
  return html`${verdict(explanation)}
${requestCard(request)}
${rules.filter(({ applies }) => applies).map((rule) => appliedRule(rule, now))}
${others.length > 0 && otherRules(others)}
${responseCard(response)}`;
}

const VERDICTS = {
  allowed: ["good", "The request would be allowed."],
  limited: ["bad", "The request would be denied."],
  undecided: ["warning", "The store cannot decide the request."],
  unmatched: ["info", "No rule applies to the request."],
} as const;

function verdict({ outcome, response: { status }, storeFailure, waitMs }: Explanation): Html {
  const [kind, text] =
    waitMs === undefined
      ? VERDICTS[outcome]
      : ([
          "warning",
          `The request would wait for its turn, for up to ${formatDuration(waitMs)}.`,
        ] as const);
  const answer =
    status === undefined
      ? "Weir would forward it."
      : `Weir would answer it with ${status}${waitMs === undefined ? "" : " only after that"}.`;
  const failure =
    storeFailure !== undefined && html`<p>The counts cannot be read: ${storeFailure}.</p>`;
  const content = html`<p><b>${text}</b> ${answer}</p>${failure}<p>Nothing was counted, and no ban has begun.</p>`;
  return notice(kind, content, "status");
}

/** The maximum number of readings of a path in the list. */
const MAX_READINGS = 20;

/** The form of a request by which rules match. */
function requestCard(request: ExplainedRequest): Html {
  const { method, sentMethod, isPreflight, host, path, variants, isUnambiguous, client } = request;
  const others = variants.filter((variant) => variant !== path);
  const listed = others
    .slice(0, MAX_READINGS)
    .map((each) => html`<li>${code(shownText(each))}</li>`);
  const sent = sentMethod !== method && ` (sent as ${sentMethod})`;
  return html`<section class="card"><h2>The request that rules match</h2>
${facts([
  ["Method", [method, sent, " ", isPreflight && badge("preflight", "CORS preflight")]],
  ["Host", host],
  ["Path", shownText(path)],
  ["Client's address", client],
])}
${
  !isUnambiguous &&
  html`<p class="note">Origins may read this path in different ways. Rules match each of them, and exceptions none.</p>`
}
${
  others.length > 0 &&
  html`<details><summary>Other readings of the path</summary><ul class="any">${listed}</ul>${
    others.length > MAX_READINGS && html`<p class="note">And more.</p>`
  }</details>`
}</section>`;
}

/** The response that the client would get, and the headers that the origin would get. */
function responseCard({ status, headers, body, originHeaders = [] }: ExplainedResponse): Html {
  const answer =
    status === undefined
      ? "The origin answers. Weir adds the headers below to its response."
      : html`Weir answers with status <b>${status}</b>.`;
  return html`<section class="card"><h2>The response</h2><p class="note">${answer}</p>
${headerTable("Headers that Weir sets", headers)}
${body !== undefined && html`<pre tabindex="0" role="group" aria-label="Body"><bdi>${body}</bdi></pre>`}
${originHeaders.length > 0 && headerTable("Headers that the origin gets", originHeaders)}</section>`;
}

function headerTable(caption: string, headers: ExplainedResponse["headers"]): Html {
  if (headers.length === 0) return html`<p class="note">${caption}: none.</p>`;
  const columns: Column<(typeof headers)[number]>[] = [
    { label: "Header", cell: ([name]) => code(name) },
    { label: "Value", class: "any", cell: ([, value]) => foreign(shownText(value)) },
  ];
  return table({ caption, showsCaption: true, columns, rows: headers });
}
