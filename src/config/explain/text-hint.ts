import { numberHint } from "./number-hint.ts";

/** Suggests a name of a rule, or a prefix, with the characters that Weir allows. */
export function nameHint(field: string, given: unknown): string | undefined {
  if (typeof given !== "string" && typeof given !== "number") return undefined;
  const text = String(given).trim().normalize("NFKD");
  const name =
    field === "name"
      ? text
          .replace(/([a-z])(?=[A-Z])/g, "$1-")
          .toLowerCase()
          .replace(/[^a-z0-9_-]+/g, "-")
          .replace(/^[-_]+|-+$/g, "")
      : text.replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^-+|-+$/g, "");
  return name === "" ? undefined : `write ${JSON.stringify(name.slice(0, 64))}`;
}

/** Suggests a share from 0 to 1 for a percentage or a number that is written as text. */
export function shareHint(given: unknown): string | undefined {
  if (typeof given !== "string" && typeof given !== "number") return undefined;
  const [, digits, percent] = /^\s*(\d*\.?\d+)\s*(%?)\s*$/.exec(String(given)) ?? [];
  const number = Number(digits);
  const share = percent || number >= 5 ? number / 100 : number;
  return share > 0 && share <= 1 ? `write ${share}` : undefined;
}

/** Suggests `{ status: […] }` for one status, a list of statuses, or a word. */
export function countHint(given: unknown): string | undefined {
  const values: unknown[] = [given].flat();
  const statuses = values.map((each) => (typeof each === "object" ? 0 : Number(String(each))));
  if (values.length > 0 && statuses.every((each) => each >= 100 && each <= 599)) {
    return `write { status: [${statuses.join(", ")}] }`;
  }
  if (typeof given !== "string") return undefined;
  return /^(all|every|requests|always|any)$/i.test(given)
    ? 'write "request"'
    : "write { status: [401, 403] } with the statuses of the responses to count";
}

/** Suggests the statuses of `count`, or the status of a denial. */
export function statusHint(
  parent: string | undefined,
  given: unknown,
  allowed: string,
): string | undefined {
  const status = numberHint(given, allowed.includes("list") ? "from 100 to 599" : allowed);
  if (parent !== "count") return status;
  if (typeof given === "number" && given >= 100 && given <= 599) return `write [${given}]`;
  if (typeof given === "string" && /^[1-5]xx$/i.test(given)) {
    return `write each status, such as ${given[0]}01, ${given[0]}03`;
  }
  return status;
}

/** Suggests an https URL without credentials, query and fragment. */
export function urlHint(given: unknown): string | undefined {
  if (typeof given !== "string") return undefined;
  const text = given.trim();
  const absolute =
    /^[a-z][\w+.-]*:/i.test(text) && !/^localhost:|^[\w.-]+:\d/.test(text)
      ? text.replace(/^(http|wss?|ftp):/i, "https:")
      : `https://${text}`;
  const url = /^https:\/\/[^/]/i.test(absolute) ? URL.parse(absolute) : null;
  if (!url || !/[.]|^localhost$/.test(url.hostname)) return undefined;
  if (url.username || url.password || url.search)
    return "remove the credentials and the query from the URL";
  return `write ${JSON.stringify(`https://${url.host}${url.pathname === "/" ? "" : url.pathname}`)}`;
}
