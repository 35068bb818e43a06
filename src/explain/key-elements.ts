import { type KeyExpression, type KeyPart, MAX_KEY_LENGTH } from "../config/key.ts";
import { type KeyContext, keyPartName, readPart } from "../request/identity.ts";
import { createNameTest } from "../request/lenient-name.ts";
import { COMMA, forEachPair, forEachParameter } from "../request/sent-values.ts";
import { hasUnclearCommas } from "../request/values.ts";
import { type ExplainedKeyElement, shownValue } from "./explanation.ts";

/** What an explanation needs to read keys, and to find out why a value is absent. */
export interface KeyFacts {
  readonly context: KeyContext;
  /** Returns why a claim is absent, as a part of a sentence. */
  readonly claimFault: (part: KeyPart & { kind: "jwt" }) => Promise<string>;
  /** Returns why the result of a function is absent, as a part of a sentence. */
  readonly customFault: (name: string) => string;
}

type Alternative = ExplainedKeyElement["alternatives"][number];

/** Returns where the values of a key come from, in the order in which Weir looks for them. */
export async function explainKey(
  key: KeyExpression,
  facts: KeyFacts,
): Promise<ExplainedKeyElement[]> {
  const elements: ExplainedKeyElement[] = [];
  for (const alternatives of key) {
    const explained: Alternative[] = [];
    for (const part of alternatives) {
      const alternative = await explainPart(part, facts);
      explained.push(alternative);
      if (alternative.result === "used") break;
    }
    const isFallback = explained.at(-1)?.result !== "used";
    elements.push({ alternatives: explained, isFallback });
  }
  return elements;
}

async function explainPart(part: KeyPart, facts: KeyFacts): Promise<Alternative> {
  const name = keyPartName(part);
  const present = await readPart(part, facts.context);
  if (!present) return { part: name, result: "absent", from: await faultOf(part, facts) };
  return {
    part: name,
    result: "used",
    from: sourceOf(part),
    value: shownValue(part, present.value),
  };
}

function sourceOf(part: KeyPart): string {
  switch (part.kind) {
    case "header":
      return `the header field ${part.name}`;
    case "cookie":
      return `the cookie ${part.name}`;
    case "query":
      return `the query parameter ${part.name}`;
    case "param":
      return `the path parameter ${part.name}`;
    case "jwt":
      return `the claim ${part.name} of the verified token`;
    case "custom":
      return `the function custom.keys.${part.name}`;
    case "ip":
      return "the header field cf-connecting-ip";
    case "country":
    case "asn":
    case "ja4":
      return "Cloudflare's data about the client";
    case "global":
      return "no value: all clients share one counter";
    default:
      return `the ${part.kind} of the request`;
  }
}

/** Returns why the request does not have a part of a key, as a part of a sentence. */
function faultOf(part: KeyPart, { context, ...facts }: KeyFacts): string | Promise<string> {
  const { request, params } = context;
  switch (part.kind) {
    case "header":
      return headerFault(part.name, request.headers.get(part.name));
    case "cookie":
      return valueFault("cookie", cookiesNamed(part.name, request.headers.get("cookie") ?? ""));
    case "query":
      return valueFault("query parameter", parametersNamed(part.name, request.search));
    case "param":
      if (Object.hasOwn(params, part.name)) return lengthFault(params[part.name] ?? "");
      return request.variants.length > 1
        ? "origins may read different values from the path"
        : "the path that matches has no such parameter";
    case "path":
      return context.path === undefined
        ? "origins may read the path in different ways"
        : lengthFault(context.path);
    case "jwt":
      return facts.claimFault(part);
    case "custom":
      return facts.customFault(part.name);
    default:
      return "Cloudflare's data about the client does not have it";
  }
}

function headerFault(name: string, value: string | null): string {
  if (value === null) return "the header field is missing";
  if (hasUnclearCommas(name, value)) {
    return "the header field has a comma, so it may have been sent twice";
  }
  return lengthFault(value);
}

function cookiesNamed(name: string, text: string): string[] {
  const isNamed = createNameTest(name);
  const values: string[] = [];
  forEachPair(text, COMMA, ({ start, equals, end }) => {
    const isCookie = equals < end && isNamed(text.slice(start, equals));
    if (isCookie) values.push(text.slice(equals + 1, end));
  });
  return values;
}

function parametersNamed(name: string, search: string): string[] {
  const isNamed = createNameTest(name);
  const values: string[] = [];
  forEachParameter(search, (sent, value) => {
    if (isNamed(sent)) values.push(value);
  });
  return values;
}

function valueFault(kind: string, values: readonly string[]): string {
  const [value, ...more] = values;
  if (value === undefined) return `the ${kind} is missing`;
  return more.length > 0 ? `the ${kind} was sent ${values.length} times` : lengthFault(value);
}

function lengthFault(value: string): string {
  if (value.trim() === "") return "its value is empty";
  if (value.length > MAX_KEY_LENGTH) return `its value is longer than ${MAX_KEY_LENGTH} characters`;
  return "origins may read different values, or an empty one";
}
