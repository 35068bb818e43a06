import { parseAlternatives } from "../key-expression.ts";
import { windowText } from "./calendar-hint.ts";
import { asnHint, botHint, countryHint } from "./client-hint.ts";
import { durationText } from "./duration-hint.ts";
import { keyHint } from "./key-hint.ts";
import { conditionList } from "./match-hint.ts";
import { wholeNumberOf } from "./number-hint.ts";

/** Whether a field takes this value unchanged. */
export function takesUnchanged(field: string, value: unknown): boolean {
  if (field === "cost" || field === "shards" || field === "maxReserved" || field === "capacity") {
    return typeof value === "number";
  }
  return field === "limit" && typeof value === "number";
}

/** Writes a field with the value that corresponds to the value of another program's field. */
export function fieldWithValue(field: string, bare: string, value: unknown): string | undefined {
  const [object, condition = ""] = field.split(".");
  if (object === "match" && condition !== "" && condition !== "except") {
    const list = clientCondition(condition, value) ?? conditionList(condition, value);
    return list && `match: { ${list} }`;
  }
  switch (field) {
    case "match.except": {
      const paths = conditionList("paths", value);
      return `match: { except: { ${paths ?? "…"} } }`;
    }
    case "exempt":
      return "exempt or match.except";
    case "countries":
    case "asns":
    case "bots":
      return clientCondition(field, value);
    case "hosts":
    case "methods":
    case "paths":
      return conditionList(field, value);
    case "window":
    case "ban": {
      const isMs = bare.endsWith("ms") || (typeof value === "number" && value >= 10_000);
      const text = (field === "window" ? windowText : durationText)(value, isMs ? 0.001 : 1);
      return text && `${field}: ${text}`;
    }
    case "limit": {
      const whole = wholeNumberOf(value);
      return whole === undefined ? undefined : `limit: ${whole}`;
    }
    case "from":
    case "settle":
      return typeof value === "string" && /^\w[\w-]*$/.test(value) && /^(header|custom)$/.test(bare)
        ? `${field}: "${bare}:${value.toLowerCase() === value || bare === "custom" ? value : value.toLowerCase()}"`
        : undefined;
    case "timeoutMs":
      return typeof value === "number" ? `timeoutMs: ${value}` : undefined;
    case "key": {
      if (typeof value === "string" && parseAlternatives(value))
        return `key: ${JSON.stringify(value)}`;
      return keyHint(value)
        ?.replace(/^write (?=")/, "key: ")
        .replace(/^write /, "key: ");
    }
    case "onError":
    case "mode":
      return field === "onError" ? onErrorFor(bare, value) : modeFor(bare, value);
    case "count":
      return countFor(bare);
    case "response":
      return responseFor(bare, value);
    default:
      return undefined;
  }
}

/** Writes a condition on the client. */
function clientCondition(field: string, value: unknown): string | undefined {
  const list = [value].flat();
  if (field === "bots")
    return `bots: ${value === true ? '"verified"' : (botsIn(list) ?? '"verified"')}`;
  if (field !== "countries" && field !== "asns") return undefined;
  const isValid = field === "asns" ? Number.isInteger : isCountry;
  const hint = field === "asns" ? asnHint(list, false) : countryHint(list, false);
  if (list.length > 0 && list.every(isValid)) return `${field}: ${JSON.stringify(list)}`;
  return hint?.startsWith("write [") ? hint.replace("write", `${field}:`) : undefined;
}

function isCountry(text: unknown): boolean {
  return typeof text === "string" && /^(?!UK)[A-Z]{2}$/.test(text);
}

function botsIn(list: readonly unknown[]): string | undefined {
  return botHint(list)?.replace(/^write /, "");
}

function onErrorFor(bare: string, value: unknown): string | undefined {
  if (typeof value !== "boolean") return undefined;
  const opens = !/close|deny/.test(bare);
  return `onError: ${opens === value ? '"open"' : '"closed"'}`;
}

function modeFor(bare: string, value: unknown): string | undefined {
  if (typeof value !== "boolean") return undefined;
  if (/^(soft|softlimit|warn|flag|mark)$/.test(bare)) {
    return `mode: ${value ? '"mark"' : '"enforce"'}`;
  }
  const enforces = /^(enforce|enforcement|enabled?|active)$/.test(bare);
  return `mode: ${enforces === value ? '"enforce"' : '"shadow"'}`;
}

function countFor(bare: string): string | undefined {
  if (bare === "skipfailedrequests") return "count: { status: [200, 201, 204] }";
  return bare.startsWith("skip") || bare.startsWith("request")
    ? "count: { status: […] }, with the statuses to count,"
    : undefined;
}

function responseFor(bare: string, value: unknown): string | undefined {
  if (typeof value === "function") {
    return 'response: "custom:NAME", with custom: { responses: { NAME: … } } at the top level,';
  }
  if (bare.includes("status") || bare.includes("code")) {
    return typeof value === "number"
      ? `response: { status: ${value} }`
      : "response: { status: 429 }";
  }
  return /body|message/.test(bare)
    ? "response: { body: … }"
    : "response: { status, body, headers }";
}
