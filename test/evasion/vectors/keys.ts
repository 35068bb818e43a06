import { head, type Vector, type VectorClass } from "../vector.ts";

/** A request that this rule counts as this client. The path of the request is the rule's name. */
function by(rule: string, client: string, name: string, ...fields: string[]): Vector {
  return {
    name: `${rule}: ${name}`,
    lines: head(`/${rule}`, ...fields),
    counted: { [rule]: client },
  };
}

/** Requests with an Authorization field, all from one client. */
function bearers(client: string, values: readonly string[]): Vector[] {
  return values.map((value) => {
    return by("bearer", client, JSON.stringify(value), `Authorization: ${value}`);
  });
}

/** One request with these Cookie fields. */
function cookie(client: string, ...fields: string[]): Vector {
  const name = fields.join(" and ") || "none";
  return by("cookie", client, name, ...fields.map((field) => `Cookie: ${field}`));
}

/** Requests with one Cookie field each, all from one client. */
function cookies(client: string, fields: readonly string[]): Vector[] {
  return fields.map((field) => cookie(client, field));
}

/** Requests with these queries, all from one client. */
function queries(client: string, texts: readonly string[]): Vector[] {
  return texts.map((text) => ({
    name: `query: ${text.length > 100 ? `${text.length} bytes` : text}`,
    lines: head(`/query?${text}`),
    counted: { query: client },
  }));
}

/**
 * Creates a request that two rules count. The key of `pair` consists of two fields, and the key of
 * `first` of one field.
 */
function pair(names: [pair: string, first: string], name: string, ...fields: string[]): Vector {
  return {
    name: `pair: ${name}`,
    lines: head("/pair", ...fields),
    counted: { pair: names[0], first: names[1] },
  };
}

/** A key of the maximum length, 8 KiB. */
const LONG = "a".repeat(8 * 1024);

/** The name of the client if a request has no usable key. Weir then uses the address as the key. */
const ADDRESS = "by address";

/** A bearer token in the form of a JWT, with this text as its signature. */
function signed(signature: string): string {
  return `Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.${signature}`;
}

export const keys: VectorClass = {
  about: "Keys: absent, empty, repeated, huge, and values that resemble others",
  vectors: [
    by("header", "k", "given", "X-Api-Key: k"),
    by("header", "k", "another case of its name", "x-API-key: k"),
    by("header", "k", "white space around it", "X-Api-Key: \t k \t"),
    by("header", "K", "another case of its value", "X-Api-Key: K"),
    by("header", ADDRESS, "absent"),
    by("header", ADDRESS, "empty", "X-Api-Key:"),
    by("header", ADDRESS, "only white space", "X-Api-Key:  \t"),
    by("header", ADDRESS, "another name", "X_Api_Key: k"),
    // If Weir used both values, a client could add a different second value each day, and be a new
    // client each day.
    by("header", ADDRESS, "sent twice", "X-Api-Key: k", "X-Api-Key: 1"),
    by("header", ADDRESS, "sent twice, with another second key", "X-Api-Key: k", "X-Api-Key: 2"),
    by("header", ADDRESS, "twice in one field", "X-Api-Key: k, 3"),
    by("header", ADDRESS, "once and empty", "X-Api-Key: k", "X-Api-Key:"),
    by("header", "long", "of 8 KiB", `X-Api-Key: ${LONG}`),
    by("header", ADDRESS, "of 8 KiB and a byte", `X-Api-Key: ${LONG}b`),
    by("header", ADDRESS, "of 100 KB", `X-Api-Key: ${"a".repeat(100_000)}`),
    by("header", "k", "a non-breaking space before it", "X-Api-Key: \xc2\xa0k"),
    by("header", "k", "an ideographic space after it", "X-Api-Key: k\xe3\x80\x80"),
    by("header", "k", "a zero-width character after it", "X-Api-Key: k\xe2\x80\x8b"),
    by("header", ADDRESS, "of bytes that are not UTF-8", "X-Api-Key: \xff\xfe"),
    by("header", ADDRESS, "of other bytes that are not UTF-8", "X-Api-Key: \xff"),
    by("header", "%", "with escapes", "X-Api-Key: %6b%00"),
    // Servers that pass header fields as variables do not distinguish these names.
    ...["X_Api_Key", "X-Api_Key", "X_Api-Key", "x_api_key"].map((other) =>
      by("header", ADDRESS, `with ${other} beside it`, "X-Api-Key: 4", `${other}: k`),
    ),
    by("header", ADDRESS, "with a byte that is not UTF-8 inside", "X-Api-Key: k\xffk"),
    by("header", "address as text", "the address itself", "X-Api-Key: 203.0.113.7"),
    by("header", "__proto__", "__proto__", "X-Api-Key: __proto__"),
    by("header", "constructor", "constructor", "X-Api-Key: constructor"),

    // All of these fields contain the same token. They differ in case, space, scheme, quotes, colon
    // and padding.
    ...bearers("t", [
      "Bearer t",
      "bEARER t",
      "Bearer   \t t",
      "t",
      "Foo t",
      "token t",
      'Token token="t"',
      "Bearer: t",
      "Bearer t==",
      "Bearer\xc2\xa0t",
    ]),
    ...bearers("T", ["Bearer T"]),
    by("bearer", ADDRESS, "two fields", "Authorization: Bearer t", "Authorization: Bearer 1"),
    ...bearers("basic", [
      "Basic dXNlcjpwYXNzd29yZA==",
      "basic dXNlcjpwYXNzd29yZA",
      "Basic: dXNlcjpwYXNzd29yZA==",
      "Bearer dXNlcjpwYXNzd29yZA==",
    ]),
    ...bearers("other basic", ["Basic dXNlcjpwYXNzd29yZQ=="]),
    // Some decoders read these values as the same bytes, but others do not. No encoder writes such
    // values.
    ...bearers(ADDRESS, [
      "Basic dXNlcjpwYXNzd29yZB==",
      "Basic dXNlcjpwYXNzd29yZA==x",
      "Basic dXNl!!cjpwYXNzd29yZA=",
      "Basic dXNl_cjpwYXNzd29yZA==",
      "Basic dXNl-cjpwYXNzd29yZA==",
      "Basic dXNl=cjpwYXNzd29yZA==",
      "Basic =dXNlcjpwYXNzd29yZA==",
      'Basic "dXNlcjpwYXNzd29yZA=="',
    ]),
    // An origin that removes "Bearer " or "Bearer" anywhere in the field reads each of these as
    // "tuv".
    ...bearers(ADDRESS, [
      "tBearer uv",
      "tuBEARER v",
      "Bearertuv",
      "tBeareruv",
      "Bearer tBeareruv",
      "tBasic uv",
    ]),
    // Origins read the first of several words, the last one, or all of them.
    ...bearers(ADDRESS, [
      "Bearer t x",
      "Bearer t y",
      "Bearer x t",
      "Bearer t t",
      "Bearer t;x=1",
      "Bearer t, Bearer x",
    ]),
    // Spellings of one signature in base64url.
    ...bearers("a signed token", ["YQ", "YR", "YQ==", "Y!Q"].map(signed)),
    ...bearers("another signed token", [signed("Yg")]),
    // Different decoders stop at different places in these signatures.
    ...bearers(ADDRESS, ["Y=Q", "=YQ", "Y=!Q=="].map(signed)),

    by("agent", "browser", "a field with commas", "User-Agent: Mozilla/5.0 (KHTML, like Gecko)"),
    by("agent", "bot", "another", "User-Agent: Bot/1 (a, b)"),

    ...cookies("s", [
      "sid=s",
      "a=b; sid=s ; c=d",
      'sid="s"',
      "sid=%73",
      'sid="\\s"',
      'sid="\\163"',
      "sid = s",
      "SID=s",
      "s%69d=s",
      "sid=s; junk=1",
      "a=1,2; sid=s; b={1,2}",
      'a="x y", "z"; sid=s',
      "a=1 b=2; sid=s; c d=3",
      "$Version=1; sid=s; $Path=/",
      'sid=s"',
      "sid=s%00",
      "sid=\xc2\xa0s\xe2\x80\x83",
      "sid=%C2%A0s",
      "[sid]=s",
      "sid[=s",
      "sid%5b%5d=s",
      "\xc2\xa0sid=s",
      "+sid=s",
      // Some apps decode a value again.
      "sid=%2573",
      "sid=%252573",
      "sid=%25%37%33",
      "sid=%u0073",
      "sid=%22s%22",
      'sid="%73"',
      "sid=s\t; a=b",
      "\tsid\t=\ts\t",
      "=; sid=s",
      "=sid=x; sid=s",
      "sid; sid=s",
      "$Version=1;sid=s",
      "sid%00=s",
      "%2573id=x; sid=s",
    ]),
    cookie("S", "sid=S"),
    cookie("v1,user-1", "sid=v1%2Cuser-1"),
    ...cookies("a b", ["sid=a+b", "sid=a%20b", 'sid="a b"']),
    cookie('a "b', 'sid="a \\"b"'),
    cookie("__proto__", "sid=__proto__"),
    cookie("a=b", "sid=a=b"),
    cookie("long", `sid=${LONG}`),
    // These fields have no cookie `sid` with a value.
    ...cookies(ADDRESS, ["", "sid", "sid=", 'sid=""', "sidx=s", "xsid=s", "=s", ";;;,,,"]),
    // `cookie` of npm before 0.7 and `cookies` of Koa drop the last character too if a quote is the
    // first one, so that they read most of these values as `s`.
    ...cookies(ADDRESS, [
      ...[..."ABCDEFGHIJKL"].map((letter) => `sid="s${letter}`),
      ...["", "%", "\\", "'", "=", ".", "\t", "\xc2\xa0"].map((end) => `sid="s${end}`),
      ...['sid="', 'sid="""', 'sid="s"A', 'sid="s"A"', 'sid=""s"A', 'sid="s\\"', 'sid="s;A"'],
      'sid=\t"sA',
      'sid=\xc2\xa0"sA',
      'x=1; sid="sA; y=2',
    ]),
    // Servers that know escapes read `s`, and others keep the backslash.
    ...cookies(ADDRESS, ["sid=\\s", "sid=\\163", 'sid="\\\\s"', "sid=%5Cs", 'sid="\\134s"']),
    // Servers that drop or cut at NULs and bytes that are not UTF-8 read `s` or `ss`.
    ...cookies(ADDRESS, [
      ...["sid=s%00x", "sid=s%00y", "sid=s%ff", "sid=s%C1%B3", "sid=s%fe%ffs", "sid=s\xffs"],
      "sid=%25252573",
    ]),
    // Servers read the first of two values, or the last one, so neither identifies the client.
    ...cookies(ADDRESS, [
      "sid=s; sid=1",
      "sid=s; sid[x]=8",
      "sid[x]=s",
      'sid=s; x="; SID=9"',
      "sid=2; sid=s",
      "sid=s; SID=3",
      "sid =s; sid=4",
      "sid=s, sid=6",
      'x="; sid=s"; sid=7',
      `${"sid=s;".repeat(5000)}`,
    ]),
    // Several Cookie fields arrive as one field, joined by commas. Browsers send one field, with
    // parts joined by `;`.
    cookie(ADDRESS, "sid=s", "sid=5"),
    cookie(ADDRESS, "sid=s", "junk=1"),
    cookie(ADDRESS, "junk=1", "sid=s"),
    // The part before the comma may be the same for all clients, so it does not identify a client.
    ...cookies(ADDRESS, [
      "sid=v1,user-1",
      'sid="v1,user-1"',
      'sid={"v":1, "id":7}',
      "sid=s,",
      "a=1,sid=s",
    ]),
    // Python's http.cookies also splits cookies at white space.
    ...cookies(ADDRESS, [
      "sid=1; a=1 sid=s",
      "sid=2; a=1\tsid=s",
      "sid=3; a=1 sid = s",
      "sid=4; secure sid=s",
      'sid=5; a="x;" sid=s',
      "sid=6; a=1 SID=s",
      "a=1 sid=s",
      "sid=s a=1",
      "sid=s secure",
      'sid="s" a=1',
      'sid="s" a="1"',
    ]),

    ...queries("q", [
      "api_key=q",
      "x=1&api_key=q&y=2",
      "api_key=%71",
      "api%5fkey=q",
      "api_key=q#api_key=1",
      "api_key=q%20",
      "api_key=+q",
      "api_key=q%00",
      "api_key=%u0071",
      "API_KEY=q",
      "api.key=q",
      "+api_key=q",
      "api_key%00x=q",
      "api_key[]=q",
      "api_key[][0]=q",
      "[api_key]=q",
      "api[key=q",
      "api%5Bkey=q",
      "api_key[=q",
      "%C2%A0api_key=q",
      "api_key=%C2%A0q%E3%80%80",
      "api_key=q%E2%80%8B",
      "x=1;api_key=q",
      "api_key=%2571",
      "api_key=%25u0071",
    ]),
    // Servers that drop or cut at NULs and bytes that are not UTF-8 read `q`. Some end a value at `;`.
    ...queries(ADDRESS, [
      ...["api_key=q%00x", "api_key=q%00y", "api_key=q%ff", "api_key=%C1%B1", "api_key=q%fe%ff"],
      ...["api_key=q;x=1", "api_key=q;", "api_key[x]=q", "api_key%5Bx%5D=q", "api_key=%25252571"],
    ]),
    ...queries("Q", ["api_key=Q"]),
    ...queries("__proto__", ["api_key=__proto__"]),
    ...queries("long", [`api_key=${LONG}`]),
    ...queries("last", [`${"x=1&".repeat(5000)}api_key=last`]),
    // These queries have no value for `api_key`, or a value that is too long.
    ...queries(ADDRESS, ["", "api_key", "api_key=", "api_key=%20", "xapi_key=q", "__proto__=q"]),
    ...queries(ADDRESS, [`api_key=${LONG}b`]),
    // A server may read several of these parameters as `api_key`.
    ...queries(ADDRESS, [
      "api_key=q&api_key=1",
      "api_key=2&API_KEY=q",
      "api_key=3&api.key=q",
      "api_key=4&api%20key=q",
      "api_key=5&api_key[]=q",
      "api_key=6&[api_key]=q",
      "api_key=7&api[key=q",
      "x=1;api_key=q&api_key=6",
      "api_key=9&api_key[x]=q",
      "api_key=10&%2561pi_key=q",
      "?api_key=q&api_key=11",
    ]),
    {
      name: "query: an escaped question mark in the path",
      lines: head("/query%3fapi_key=q&x?api_key=12"),
      counted: { query: ADDRESS },
    },
    // Rack 2 skips brackets of either kind in front of a name.
    ...queries(
      ADDRESS,
      ["]api_key", "[]api_key", "][api_key", "%5D%5Bapi_key", "[][api_key]]", "[+]api_key"].map(
        (name) => `api_key=8&${name}=q`,
      ),
    ),

    pair(["a, b", "a"], "two fields", "User: a", "Role: b"),
    pair(["ab, c", "ab"], "a character more in the first field", "User: ab", "Role: c"),
    pair(["a, bc", "a"], "a character more in the second field", "User: a", "Role: bc"),
    pair(
      ["a_role_b, c", "a_role_b"],
      "a delimiter in the first field",
      "User: a_role_b",
      "Role: c",
    ),
    pair(
      ["a, b_role_c", "a"],
      "the same delimiter in the second field",
      "User: a",
      "Role: b_role_c",
    ),
    pair(["1:a, b", "1:a"], "a length in the first field", "User: 1:a", "Role: b"),
    pair(["1, b", "1"], "the first field without that length", "User: 1", "Role: b"),
    pair(["a, none", "a"], "the second field is missing", "User: a"),
    pair(["none, a", "role a"], "the first field is missing", "Role: a"),
    pair(["none, none", "none"], "both fields are missing"),
    pair(["address, none", "address"], "the first field is the address", "User: 203.0.113.7"),
    pair(["|", "|"], "only delimiters", "User: |", "Role: |"),
  ],
};
