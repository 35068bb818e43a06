import { isRecord } from "../fields.ts";
import { parseHost, parseMethod, parseRoute } from "../match.ts";
import { withoutCredentials } from "./given-value.ts";
import { routeOfOthers } from "./route-notation.ts";

const NO_CONDITION: Readonly<Record<string, string>> = {
  hosts: "leave hosts out to match every host",
  methods: "leave methods out to match every method",
  paths: 'write "/*", or leave paths out to match every path',
};

/** The characters between several values in one text. A path may contain `|`. */
const SEPARATORS: Readonly<Record<string, RegExp>> = { methods: /\s*[,|]\s*/ };

/** Returns conditions as users write them in `match`, such as `paths: ["/login"]`. */
function conditions(found: Readonly<Record<string, readonly string[]>>): string | undefined {
  const fields = Object.entries(found)
    .filter(([, values]) => values.length > 0)
    .map(([name, values]) => `${name}: ${list(values)}`);
  return fields.length > 0 ? fields.join(", ") : undefined;
}

function list(values: readonly string[]): string {
  return `[${values.map((value) => JSON.stringify(value)).join(", ")}]`;
}

/**
 * Suggests a value for `match` or `except`: `{ paths: ["/login"] }` instead of `"/login"`.
 *
 * @param field the field that has the value. The two fields have opposite meanings
 */
export function matchHint(field: "match" | "except", given: unknown): string | undefined {
  if (typeof given === "function") {
    return "write conditions: hosts, methods, paths. A function cannot decide which requests match";
  }
  const texts = [given].flat().filter((each) => typeof each === "string");
  if (texts.length === 0) return undefined;
  const all = texts.map(conditionsIn);
  const found = {
    hosts: all.flatMap(({ hosts = [] }) => hosts),
    methods: all.flatMap(({ methods = [] }) => methods),
    paths: all.flatMap(({ paths = [] }) => paths),
  };
  const text = conditions(found);
  return text && `write ${field}: { ${text} }`;
}

/**
 * Suggests a value for `hosts`, `methods` or `paths`, or for one of their elements.
 *
 * @param isElement whether the value is an element of the list
 */
export function conditionHint(
  field: string,
  given: unknown,
  isElement: boolean,
): string | undefined {
  const isNone = Array.isArray(given) && given.length === 0;
  if (isNone || given === "*" || given === null || given === "") return NO_CONDITION[field];
  if (field === "methods" && [given].flat().some(isAnyMethod)) return NO_CONDITION.methods;
  if (given instanceof RegExp) return `write routes, such as "/users/:id{[0-9]+}"`;
  const values = isRecord(given) ? Object.values(given) : [given].flat();
  const texts = values.flatMap((value) =>
    typeof value === "string" ? value.split(SEPARATORS[field] ?? /\s*,\s*/) : [],
  );
  if (texts.length === 0) return undefined;
  // A file extension, such as `*.js`, looks like a host, but is none.
  const stray = texts
    .filter((text) => !/^\/?\*\.\w+$/.test(text))
    .map(conditionsIn)
    .find((found) => Object.keys(found).length > 1);
  if (stray) return `write ${conditions(stray)}`;
  const mended = texts.map((text) => mend(field, text));
  if (mended.some((text) => text === undefined)) return undefined;
  const written = list(mended as string[]);
  return `write ${isElement ? written.slice(1, -1) : written}`;
}

/** Whether a text stands for every method in other programs. HTTP has no method with such a name. */
export function isAnyMethod(text: unknown): boolean {
  return typeof text === "string" && /^\s*(all|any|every)\s*$/i.test(text);
}

/** Suggests the name of a host in `origins`. */
export function hostHint(given: string): string | undefined {
  const bare = bareHost(given);
  if (/^[a-z\d.*-]+\.[a-z]+(:\d+)?\/./i.test(given) && parseHost(bare)) {
    return `write ${JSON.stringify(bare)}: a path belongs in the origin's url`;
  }
  return /^\*?$/.test(given)
    ? "write the origin of all other hosts in origin, beside origins"
    : conditionHint("hosts", given, true);
}

/** Suggests a list as the value of a condition: `["/login"]` instead of `"/login"`. */
export function conditionList(field: string, given: unknown): string | undefined {
  const texts = [given].flat();
  const mended = texts.map((text) => (typeof text === "string" ? mend(field, text) : undefined));
  return texts.length === 0 || mended.includes(undefined)
    ? undefined
    : `${field}: ${list(mended as string[])}`;
}

function mend(field: string, text: string): string | undefined {
  const found = conditionsIn(text);
  const [mended] = (field in found && found[field as keyof typeof found]) || [];
  return mended ?? mendOne(field, text);
}

function mendOne(field: string, text: string): string | undefined {
  switch (field) {
    case "hosts":
      return parseHost(bareHost(text)) ? bareHost(text) : undefined;
    case "methods":
      return parseMethod(text.trim());
    default:
      return mendRoute(text);
  }
}

type Found = Readonly<Partial<Record<"hosts" | "methods" | "paths", readonly string[]>>>;

/** Reads a text such as `"GET https://api.example.com/login"`. */
function conditionsIn(text: string): Found {
  const [, methods = "", rest = text] =
    /^\s*((?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)(?:[|,\s]+(?!\/|\w+:|\w+\.)\w+)*)\s+(\S.*)$/i.exec(
      text,
    ) ?? [];
  const [, host = "", path = ""] =
    /^(?:[a-z]+:\/\/)?(?:[^/@]*@)?([\w*-]+(?:\.[\w-]+)+|localhost)(?::\d+|:\*)?(\/.*)?$/i.exec(
      rest.trim(),
    ) ?? [];
  const isUrl = host !== "" && parseHost(bareHost(host)) !== undefined;
  const route = mendRoute(isUrl ? path : rest);
  return {
    ...(isUrl && { hosts: [bareHost(host)] }),
    ...(methods && { methods: methods.split(/[|,\s]+/).map((each) => each.toUpperCase()) }),
    ...(route &&
      (!isUrl || (path !== "" && path !== "/")) &&
      /[/:*]/.test(rest) && { paths: [route] }),
    ...(!isUrl && !methods && isMethodName(text) && { methods: [text.trim().toUpperCase()] }),
  };
}

function isMethodName(text: string): boolean {
  return /^\s*(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)\s*$/i.test(text);
}

/** Returns the host without scheme, credentials, port and path. A leading dot means all subdomains. */
function bareHost(text: string): string {
  return text
    .trim()
    .replace(/^[a-z]+:\/\//i, "")
    .replace(/^[^/@]*@/, "")
    .replace(/[/?#].*$/s, "")
    .replace(/:(\d+|\*)$/, "")
    .replace(/^\.(?=\w)/, "*.");
}

/** Returns a valid route for an invalid text; undefined if there is no obvious one. */
function mendRoute(text: string): string | undefined {
  const foreign = routeOfOthers(text);
  if (foreign !== undefined) return parseRoute(foreign);
  if (/\\[dwsb.]|[[\]]/i.test(text.replace(/\{.*\}/g, ""))) return undefined;
  const trimmed = withoutCredentials(text)
    .trim()
    .replace(/^\^\\?\/?|\$$/g, (part) => (part === "$" ? "" : "/"))
    .replace(/(?<!\{[^}]*)[?#](?!$|\/).*$/s, "");
  const route = `/${trimmed}`
    .replace(/\\/g, "/")
    .replace(/^\/+/, "/")
    .replace(/\/\{(\w+)\}/g, "/:$1")
    .replace(/\/(?::\w+[*+]|\*\*|\*\w+|\(\.\*\)|\.\*|\{[*.]+\w*\})(?=\/|$)/g, "/*")
    .replace(/([^/])\*+$/, "$1/*");
  const segments: string[] = [];
  for (const segment of route.split("/")) {
    if (segment === "..") segments.pop();
    else if (segment !== ".") segments.push(segment);
  }
  const mended = segments.join("/") || "/";
  return parseRoute(mended);
}
