import type { FieldMap } from "./field-map.ts";
import { fieldNames, listedNames } from "./field-names.ts";
import { LogError } from "./log-error.ts";
import type { LogRecord } from "./record-fields.ts";

/** What each request needs, and where Cloudflare's records have it. */
const NEEDED = [
  { fact: "time", name: "a time", logpush: "EdgeStartTimestamp" },
  { fact: "method", name: "a method", logpush: "ClientRequestMethod" },
  { fact: "url", name: "a URL", logpush: "ClientRequestURI" },
] as const;

/**
 * Returns the error for records of which none is a request.
 *
 * @param fields the fields that were found and given
 */
export function missingFields(
  file: string,
  format: "json" | "logpush",
  records: readonly LogRecord[],
  fields: FieldMap,
): LogError {
  const isMissing = (fact: string) =>
    !fields.has(fact) && (fact === "time" || !fields.has("request"));
  const missing = NEEDED.filter(({ fact }) => isMissing(fact));
  const options = (missing.length > 0 ? missing : NEEDED).map(({ fact }) => `--map ${fact}=FIELD`);
  const names = `The first records have the fields ${listedNames(fieldNames(records))}.`;
  if (format === "logpush" && missing.length > 0) {
    const lacked = missing.map(({ logpush }) => logpush).join(" and ");
    return new LogError(
      `${file}: Cloudflare's records have no ${lacked}. Add it to the fields of the Logpush job, or name another field: ${options.join(" ")}. ${names}`,
    );
  }
  const lacked =
    missing.length > 0
      ? `has ${listOf(missing.map(({ name }) => name))} in a field with a known name`
      : "has a time, a method and a URL";
  return new LogError(
    `${file}: none of the first records ${lacked}. Name the fields, such as ${options.join(" ")}. ${names}`,
  );
}

function listOf(names: readonly string[]): string {
  const [last = "", ...others] = [...names].reverse();
  return others.length === 0 ? last : `${others.reverse().join(", ")} or ${last}`;
}
