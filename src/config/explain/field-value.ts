import { parseAlternatives } from "../key-expression.ts";
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
    const list = conditionList(condition, value);
    return list && `match: { ${list} }`;
  }
  switch (field) {
    case "match.except": {
      const paths = conditionList("paths", value);
      return `match: { except: { ${paths ?? "…"} } }`;
    }
    case "exempt":
      return "exempt or match.except";
    case "hosts":
    case "methods":
    case "paths":
      return conditionList(field, value);
    case "window":
    case "ban": {
      const isMs = bare.endsWith("ms") || (typeof value === "number" && value >= 10_000);
      const text = durationText(value, isMs ? 0.001 : 1);
      return text && `${field}: ${text}`;
    }
    case "limit": {
      const whole = wholeNumberOf(value);
      return whole === undefined ? undefined : `limit: ${whole}`;
    }
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

function onErrorFor(bare: string, value: unknown): string | undefined {
  if (typeof value !== "boolean") return undefined;
  const opens = !/close|deny/.test(bare);
  return `onError: ${opens === value ? '"open"' : '"closed"'}`;
}

function modeFor(bare: string, value: unknown): string | undefined {
  if (typeof value !== "boolean") return undefined;
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
  if (bare.includes("status") || bare.includes("code")) {
    return typeof value === "number"
      ? `response: { status: ${value} }`
      : "response: { status: 429 }";
  }
  return /body|message/.test(bare)
    ? "response: { body: … }"
    : "response: { status, body, headers }";
}
