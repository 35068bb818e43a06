import { isRecord } from "../fields.ts";
import { parseAlternatives } from "../key.ts";
import { bareName, nearestName } from "./given-value.ts";

/**
 * Matches a key that reads a claim, such as `jwt.plan` or `claims:#/plan`. The `#` is from the
 * notation of JSON Pointers in URLs.
 */
const CLAIM = /^(?:jwt|claims?|token)\s*[:.]\s*#?(\S{1,256})$/i;

/**
 * Returns the key of a nested or URL-named claim that is written in another notation, such as
 * `jwt:/app_metadata/plan` for `jwt:app_metadata[plan]`.
 *
 * @returns undefined if the text does not name such a claim
 */
function claimKey(text: string): string | undefined {
  const [, claim] = CLAIM.exec(text) ?? [];
  if (!claim) return undefined;
  if (claim.includes(":/")) return `jwt:/${escaped(claim.replace(/^\/|\/$/g, ""))}`;
  if (claim.startsWith("/")) {
    return `jwt:${claim.replace(/~(?![01])/g, "~0").replace(/(?<!\/)\/$/, "")}`;
  }
  const names = claim.replace(/^\$\.?/, "").match(/[^./[\]"']+/g) ?? [];
  return names.length > 1 ? `jwt:/${names.map(escaped).join("/")}` : undefined;
}

/** Escapes a name as RFC 6901 demands. */
function escaped(name: string): string {
  return name.replace(/~(?![01])/g, "~0").replaceAll("/", "~1");
}

const EXAMPLES: Readonly<Record<string, string>> = {
  header: "x-api-key",
  cookie: "session",
  query: "api_key",
  param: "id",
  jwt: "sub",
  custom: "tenant",
};
const KINDS = Object.keys(EXAMPLES);
const VALUES = ["ip", "host", "path", "method", "country", "asn", "ja4", "global"];

/**
 * Names that other programs and users give to a client's properties, in lower case and without
 * separators. The key is Weir's notation.
 */
const SYNONYMS: Readonly<Record<string, string>> = {
  ip: "ipaddress ips ipaddr ipv4 ipv6 clientip userip remoteip remoteaddr remoteaddress requestip address addr sourceip srcip reqip binaryremoteaddr cfconnectingip xforwardedfor xrealip trueclientip forwarded forwardedfor connectinginfo client",
  host: "hostname domain servername httphost site vhost zone",
  path: "url uri pathname route requesturi endpoint resource",
  method: "verb requestmethod httpmethod",
  country: "countrycode geo ipcountry cfipcountry region",
  asn: "asnum as network isp asnumber",
  ja4: "ja3 fingerprint tls tlsfingerprint ja4hash",
  global: "all any none everyone everything shared service constant static * false total",
  "header:x-api-key": "apikey xapikey apitoken apikeys accesskey key",
  "header:authorization":
    "authorization bearer auth token accesstoken bearertoken authheader basicauth",
  "header:user-agent": "useragent ua",
  "cookie:session": "session sessionid sid cookie cookies",
};

const IDENTITIES =
  /^(user|userid|username|uid|sub|subject|account|accountid|customer|customerid|consumer|credential|tenant|tenantid|org|orgid|organization|team|teamid|workspace|principal|identity|login|member|plan|tier|role|email|claim|body|json|form|formdata)$/;

/** nginx's variables, Express's and Hono's requests, and objects such as `headers["x-api-key"]`. */
const FOREIGN =
  /^\$?(?:c\.|ctx\.)?(?:req(?:uest)?\.)?(?:(http|headers?)|(cookies?)|(arg|query|queryparam|searchparams)|(params?|path_?param)|(jwt|claims?|token))[\s_.:=([]+["']?([\w-]+)["']?[\])]*$/i;

/** Suggests a key in Weir's notation. */
export function keyHint(given: unknown): string | undefined {
  if (typeof given === "function") {
    return 'write "custom:NAME" and put the function into custom.keys.NAME';
  }
  const suggestion = suggestionFor(given);
  if (suggestion) return `write ${suggestion}`;
  if (typeof given === "string" && KINDS.includes(given.trim().replace(/:$/, "").toLowerCase())) {
    const kind = given.trim().replace(/:$/, "").toLowerCase();
    return `write "${kind}:NAME" with the name, such as "${kind}:${EXAMPLES[kind]}"`;
  }
  if (typeof given === "string" && IDENTITIES.test(bareName(given.split(/[.:]/)[0] ?? ""))) {
    return `write "jwt:CLAIM" for a claim of a verified token, such as "jwt:sub", or "custom:NAME" for the result of custom.keys.NAME`;
  }
  return undefined;
}

/** Suggests the key of `tiers.by`, which is one text: a list of keys would give no name of a tier. */
export function tierKeyHint(given: unknown): string | undefined {
  return keyHint(
    Array.isArray(given) && given.length > 1 ? given.flat().map(String).join(" | ") : given,
  );
}

function suggestionFor(given: unknown): string | undefined {
  if (Array.isArray(given)) {
    if (given.some(Array.isArray)) return suggestionFor(given.flat());
    if (given.length === 0)
      return '"global" for one counter for all clients, or leave key out for "ip"';
    if (given.length === 1) return textFor(given[0]);
    const keys = given.map((each) => (typeof each === "string" ? keyFor(each) : undefined));
    return keys.includes(undefined) ? undefined : JSON.stringify(keys);
  }
  if (isRecord(given)) {
    const [[kind, name] = [], ...others] = Object.entries(given);
    return others.length === 0 && typeof name === "string" ? textFor(`${kind}:${name}`) : undefined;
  }
  return given === false || given === null ? '"global"' : textFor(given);
}

function textFor(given: unknown): string | undefined {
  if (typeof given !== "string") return undefined;
  const key = keyFor(given);
  if (key) return JSON.stringify(key);
  const elements = given.split(/\s*(?:[,+&;]|\band\b)\s*|\s+(?!\|)(?<!\|\s)/i).filter(Boolean);
  const keys = elements.length > 1 && elements.length < 9 ? elements.map(keyFor) : [];
  return keys.length > 0 && !keys.includes(undefined) ? JSON.stringify(keys) : undefined;
}

/** Returns a valid key for an invalid text, such as `ip` for `IP` and `| ip`. */
function keyFor(given: string): string | undefined {
  const alternatives = given
    .split(/\s*\|+\s*|\s+or\s+|\s*\?\?\s*/i)
    .filter(Boolean)
    .map(alternativeFor);
  if (alternatives.length === 0 || alternatives.includes(undefined)) return undefined;
  const key = alternatives.join(" | ");
  return parseAlternatives(key) ? key : undefined;
}

function alternativeFor(given: string): string | undefined {
  const text = given.trim().replace(/^["']|["']$/g, "");
  if (parseAlternatives(text)) return text;
  return (
    functionName(text) ??
    claimKey(text) ??
    foreign(text) ??
    synonym(text) ??
    headerName(text) ??
    misspelt(text)
  );
}

/** Returns `custom:userId` for `custom:user-id`, because the name of a function has no hyphen. */
function functionName(text: string): string | undefined {
  const [, name] = /^custom:([A-Za-z][\w-]*[\w])$/.exec(text) ?? [];
  return name && `custom:${name.replace(/-+(\w)/g, (_, letter: string) => letter.toUpperCase())}`;
}

function foreign(text: string): string | undefined {
  const parameter = /^\/?:(\w+)$/.exec(text)?.[1] ?? /^\{(\w+)\}$/.exec(text)?.[1];
  if (parameter) return `param:${parameter}`;
  const [, header, cookie, query, param, jwt, name = ""] = FOREIGN.exec(text) ?? [];
  if (header) return headerKey(name.replace(/_/g, "-"));
  if (cookie) return `cookie:${name}`;
  if (query) return `query:${name}`;
  if (param) return `param:${name}`;
  return jwt && `jwt:${name}`;
}

function synonym(text: string): string | undefined {
  const name = bareName(text).replace(/^\$|^(c\.)?req(uest)?\.|^cf\./g, "");
  if (VALUES.includes(name)) return name;
  const [key] = Object.entries(SYNONYMS).find(([, names]) => names.split(" ").includes(name)) ?? [];
  return key;
}

/** A text with a hyphen, such as `x-api-key`, is the name of a header. */
function headerName(text: string): string | undefined {
  return /^[a-z][a-z0-9]*(-[a-z0-9]+)+$/i.test(text) && text.length <= 40
    ? headerKey(text)
    : undefined;
}

/** Returns the key of a header. The headers that hold a client's address become `ip`. */
function headerKey(name: string): string {
  return synonym(name) === "ip" ? "ip" : `header:${name.toLowerCase()}`;
}

function misspelt(text: string): string | undefined {
  // The text after the name may be a secret: header:NAME:SECRET.
  const [kind = "", name] = text.split(/\s*[:=.]\s*/);
  if (name === undefined) return nearestName(text, VALUES);
  if (VALUES.includes(kind.toLowerCase())) return kind.toLowerCase();
  const meant = nearestName(kind, KINDS);
  return meant && name ? `${meant}:${name}` : undefined;
}
