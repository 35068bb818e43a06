import type { MatchInput } from "../../src/config/match.ts";

const MAX_LENGTH = 64;

/** Returns a name for a rule: the words of its first path, such as `api-login`, or `all-requests`. */
export function defaultName(match: MatchInput | undefined): string {
  // JSON may have anything here. The check of the configuration reports it.
  const [path] = [match?.paths as unknown].flat();
  const name = (typeof path === "string" ? path : "")
    .slice(0, 500)
    .toLowerCase()
    .split("/")
    .filter((segment) => /^[a-z0-9._-]+$/.test(segment))
    .join("-")
    .replace(/[^a-z0-9_-]/g, "-")
    .replace(/^[-_]+/, "")
    .slice(0, MAX_LENGTH);
  if (name !== "") return name;
  return match ? "suggested" : "all-requests";
}
