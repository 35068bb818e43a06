// These functions read one cookie from a Cookie field as different servers do, by the code of these servers.

/** Reads a cookie. @returns undefined if the server finds no such cookie */
export type CookieReading = (field: string, name: string) => string | undefined;

export const COOKIE_SERVERS: Readonly<Record<string, CookieReading>> = {
  "npm cookie before 0.7": (field, name) => firstNamed(npmPairs(field, trim), name, halfQuoted),
  "npm cookie 0.7": (field, name) => firstNamed(npmPairs(field, trim), name, fullyQuoted),
  "npm cookie 1": (field, name) => firstNamed(npmPairs(field, trimTabs), name, decodeOrKeep),
  "npm cookies of Koa": readKoa,
  Hono: readHono,
  "Python http.cookies": readPython,
  Django: (field, name) => lastNamed(pairsAt(field, /;/), name, (value) => unquotePython(value)),
  Werkzeug: (field, name) => firstNamed(pairsAt(field, /;/), name, unquotePython),
  PHP: (field, name) => firstNamed(phpPairs(field), name, (value) => value),
  Go: readGo,
  Rack: (field, name) => firstNamed(pairsAt(field, /; */), name, decodePlus),
  "a Java servlet that also splits at commas": (field, name) =>
    firstNamed(pairsAt(field, /[;,]/), name, unquotePython),
  "an app that decodes again": (field, name) => {
    const value = firstNamed(npmPairs(field, trimTabs), name, decodeOrKeep);
    return value === undefined ? undefined : decodeOrKeep(value);
  },
  "an app that strips quotes": (field, name) =>
    firstNamed(npmPairs(field, trim), name, (value) => value.replace(/^"+|"+$/g, "")),
};

type Named = readonly [name: string, value: string];

function trim(text: string): string {
  return text.trim();
}

function trimTabs(text: string): string {
  return text.replace(/^[ \t]+|[ \t]+$/g, "");
}

function pairsAt(field: string, separator: RegExp): Named[] {
  return field.split(separator).flatMap((pair): Named[] => {
    const equals = pair.indexOf("=");
    return equals === -1 ? [] : [[trim(pair.slice(0, equals)), trim(pair.slice(equals + 1))]];
  });
}

function npmPairs(field: string, trimmed: (text: string) => string): Named[] {
  return field.split(";").flatMap((pair): Named[] => {
    const equals = pair.indexOf("=");
    if (equals === -1) return [];
    return [[trimmed(pair.slice(0, equals)), trimmed(pair.slice(equals + 1))]];
  });
}

function firstNamed(
  pairs: readonly Named[],
  name: string,
  read: (value: string) => string | undefined,
): string | undefined {
  const found = pairs.find(([each]) => each === name);
  return found && read(found[1]);
}

function lastNamed(
  pairs: readonly Named[],
  name: string,
  read: (value: string) => string | undefined,
): string | undefined {
  return firstNamed(pairs.toReversed(), name, read);
}

function decodeOrKeep(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Drops a quote at the start, and with it the last character, without checking for a second quote. */
function halfQuoted(value: string): string {
  return decodeOrKeep(value.startsWith('"') ? value.slice(1, -1) : value);
}

function fullyQuoted(value: string): string {
  return decodeOrKeep(/^".*"$/s.test(value) ? value.slice(1, -1) : value);
}

function readKoa(field: string, name: string): string | undefined {
  const value = new RegExp(`(?:^|;) *${name}=([^;]*)`).exec(field)?.[1];
  return value?.startsWith('"') ? value.slice(1, -1) : value;
}

function readHono(field: string, name: string): string | undefined {
  for (const [each, value] of npmPairs(field, trimTabs)) {
    if (each !== name) continue;
    const bare = value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value;
    if (!/^[ !#-:<-[\]-~]*$/.test(bare)) continue;
    return decodeRuns(bare);
  }
  return undefined;
}

/** Decodes each run of escapes that is UTF-8. */
function decodeRuns(text: string): string {
  const whole = decodeOrKeep(text);
  return whole === text ? text.replace(/(?:%[\da-f]{2})+/gi, decodeOrKeep) : whole;
}

const PYTHON_KEY = "[\\w!#%&'~_`><@,:/$*+\\-.^|)(?}{=]";
/** The white space that Python removes here, which is only ASCII. */
const PYTHON_SPACE = "[ \\t\\n\\r\\f\\v]";
const PYTHON_PAIR = new RegExp(
  `_*(${PYTHON_KEY}+?)(_*=_*("(?:[^\\\\"]|\\\\.)*"|(?:${PYTHON_KEY}|[\\[\\]])*))?_*(?:_+|;|$)`.replace(
    /_(?=[*+])/g,
    PYTHON_SPACE,
  ),
  "y",
);

function readPython(field: string, name: string): string | undefined {
  const pattern = new RegExp(PYTHON_PAIR);
  let value: string | undefined;
  while (pattern.lastIndex < field.length) {
    const pair = pattern.exec(field);
    if (!pair) break;
    if (pair[1] === name && pair[3] !== undefined) value = unquotePython(pair[3]);
  }
  return value;
}

function unquotePython(value: string): string {
  if (value.length < 2 || !/^".*"$/s.test(value)) return value;
  return value
    .slice(1, -1)
    .replace(/\\(?:([0-3][0-7]{2})|(.))/gs, (_, octal, other) =>
      octal === undefined ? other : String.fromCharCode(Number.parseInt(octal, 8)),
    );
}

/** PHP decodes names and values, ignores white space before a name, and cuts a name at a NUL. */
function phpPairs(field: string): Named[] {
  return field.split(";").flatMap((pair): Named[] => {
    const equals = pair.indexOf("=");
    if (equals === -1) return [];
    const name = decodePlus(pair.slice(0, equals).trimStart()).split("\0", 1)[0] ?? "";
    return [[name.replace(/\[.*$/s, "").replace(/[. ]/g, "_"), decodePlus(pair.slice(equals + 1))]];
  });
}

function decodePlus(text: string): string {
  return decodeRuns(text.replaceAll("+", " "));
}

function readGo(field: string, name: string): string | undefined {
  for (const [each, value] of npmPairs(field, trimTabs)) {
    if (each !== name) continue;
    const bare = /^".*"$/s.test(value) && value.length > 1 ? value.slice(1, -1) : value;
    if (/^[ !#-:<-[\]-~]*$/.test(bare)) return bare;
  }
  return undefined;
}
