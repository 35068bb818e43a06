import { head, type Vector, type VectorClass } from "../vector.ts";

/** A request to the rule of that name, counted by it as that client. */
function by(rule: string, client: string, name: string, ...fields: string[]): Vector {
  return {
    name: `${rule}: ${name}`,
    lines: head(`/${rule}`, ...fields),
    counted: { [rule]: client },
  };
}

function cookie(client: string, ...fields: string[]): Vector {
  return by(
    "cookie",
    client,
    fields.join(" and ") || "none",
    ...fields.map((field) => `Cookie: ${field}`),
  );
}

function query(client: string, text: string): Vector {
  return {
    name: `query: ${text.length > 100 ? `${text.length} bytes` : text}`,
    lines: head(`/query?${text}`),
    counted: { query: client },
  };
}

function pair(names: [pair: string, first: string], name: string, ...fields: string[]): Vector {
  return {
    name: `pair: ${name}`,
    lines: head("/pair", ...fields),
    counted: { pair: names[0], first: names[1] },
  };
}

/** As long as a key may be. */
const LONG = "a".repeat(8 * 1024);

/** In a key, whoever is not named otherwise is counted by the address. */
const ADDRESS = "by address";

export const keys: VectorClass = {
  about: "Keys: absent, empty, repeated, huge, and values made to be taken for others",
  vectors: [
    by("header", "k", "given", "X-Api-Key: k"),
    by("header", "k", "another case of its name", "x-API-key: k"),
    by("header", "k", "white space around it", "X-Api-Key: \t k \t"),
    by("header", "K", "another case of its value", "X-Api-Key: K"),
    by("header", ADDRESS, "absent"),
    by("header", ADDRESS, "empty", "X-Api-Key:"),
    by("header", ADDRESS, "only white space", "X-Api-Key:  \t"),
    by("header", ADDRESS, "another name", "X_Api_Key: k"),
    // Else a good key and one of the day would be a new client each day.
    by("header", ADDRESS, "sent twice", "X-Api-Key: k", "X-Api-Key: 1"),
    by("header", ADDRESS, "sent twice, with another second", "X-Api-Key: k", "X-Api-Key: 2"),
    by("header", ADDRESS, "twice in one field", "X-Api-Key: k, 3"),
    by("header", ADDRESS, "once and empty", "X-Api-Key: k", "X-Api-Key:"),
    by("header", "long", "of 8 KiB", `X-Api-Key: ${LONG}`),
    by("header", ADDRESS, "of 8 KiB and a byte", `X-Api-Key: ${LONG}b`),
    by("header", ADDRESS, "of 100 KB", `X-Api-Key: ${"a".repeat(100_000)}`),
    by("header", "k", "a non-breaking space in front", "X-Api-Key: \xc2\xa0k"),
    by("header", "k", "an ideographic space behind", "X-Api-Key: k\xe3\x80\x80"),
    by("header", "k", "a character without width behind", "X-Api-Key: k\xe2\x80\x8b"),
    by("header", ADDRESS, "of odd bytes", "X-Api-Key: \xff\xfe"),
    by("header", ADDRESS, "of other odd bytes", "X-Api-Key: \xff"),
    by("header", "%", "with escapes", "X-Api-Key: %6b%00"),
    by("header", "address as text", "the address itself", "X-Api-Key: 203.0.113.7"),
    by("header", "__proto__", "__proto__", "X-Api-Key: __proto__"),
    by("header", "constructor", "constructor", "X-Api-Key: constructor"),

    by("bearer", "t", "given", "Authorization: Bearer t"),
    by("bearer", "t", "another case", "Authorization: bEARER t"),
    by("bearer", "t", "more space", "Authorization: Bearer   \t t"),
    by("bearer", "T", "another token", "Authorization: Bearer T"),
    by("bearer", ADDRESS, "two fields", "Authorization: Bearer t", "Authorization: Bearer 1"),
    by("bearer", "basic", "Basic", "Authorization: Basic dXNlcjpwYXNzd29yZA=="),
    by("bearer", "basic", "without padding", "Authorization: basic dXNlcjpwYXNzd29yZA"),
    // Decoders read these as the same bytes, or as others. No encoder writes them.
    ...[
      "dXNlcjpwYXNzd29yZB==",
      "dXNlcjpwYXNzd29yZA==x",
      "dXNl!!cjpwYXNzd29yZA=",
      "dXNl_cjpwYXNzd29yZA==",
      "dXNl-cjpwYXNzd29yZA==",
      "dXNl=cjpwYXNzd29yZA==",
      "=dXNlcjpwYXNzd29yZA==",
      '"dXNlcjpwYXNzd29yZA=="',
    ].map((word) =>
      by("bearer", ADDRESS, `Basic written as ${word}`, `Authorization: Basic ${word}`),
    ),
    by("bearer", "basic", "Basic with a colon", "Authorization: Basic: dXNlcjpwYXNzd29yZA=="),
    by("bearer", "basic", "as a token", "Authorization: Bearer dXNlcjpwYXNzd29yZA=="),
    by("bearer", "t", "no scheme", "Authorization: t"),
    by("bearer", "t", "another scheme", "Authorization: Foo t"),
    by("bearer", "t", "Token", "Authorization: token t"),
    by("bearer", "t", "Token, as Rails writes it", 'Authorization: Token token="t"'),
    by("bearer", "t", "a colon", "Authorization: Bearer: t"),
    // To an origin that takes "Bearer " or "Bearer" off wherever it stands, each of these is "tuv".
    ...["tBearer uv", "tuBEARER v", "Bearertuv", "tBeareruv", "Bearer tBeareruv", "tBasic uv"].map(
      (value) => by("bearer", ADDRESS, value, `Authorization: ${value}`),
    ),
    by("bearer", "t", "padding", "Authorization: Bearer t=="),
    by("bearer", "t", "a non-breaking space", "Authorization: Bearer\xc2\xa0t"),
    // Of several words an origin takes the first, the last or all.
    ...["t x", "t y", "x t", "t t", "t;x=1", "t, Bearer x"].map((words) =>
      by("bearer", ADDRESS, JSON.stringify(words), `Authorization: Bearer ${words}`),
    ),
    ...["YQ", "YR", "YQ==", "Y!Q"].map((signature) =>
      by(
        "bearer",
        "a signed token",
        `a signature that is written ${signature}`,
        `Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.${signature}`,
      ),
    ),
    by(
      "bearer",
      "another signed token",
      "another signature",
      "Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.Yg",
    ),
    ...["Y=Q", "=YQ", "Y=!Q=="].map((signature) =>
      by(
        "bearer",
        ADDRESS,
        `a signature that is written ${signature}`,
        `Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.${signature}`,
      ),
    ),
    by("bearer", "other basic", "another Basic", "Authorization: Basic dXNlcjpwYXNzd29yZQ=="),

    by("agent", "browser", "a field with commas", "User-Agent: Mozilla/5.0 (KHTML, like Gecko)"),
    by("agent", "bot", "another", "User-Agent: Bot/1 (a, b)"),

    cookie("s", "sid=s"),
    cookie("s", "a=b; sid=s ; c=d"),
    cookie("s", 'sid="s"'),
    cookie("s", "sid=%73"),
    cookie("s", 'sid="\\s"'),
    cookie("s", 'sid="\\163"'),
    cookie("s", "sid = s"),
    cookie("s", "SID=s"),
    cookie("s", "s%69d=s"),
    cookie("s", "sid=s; junk=1"),
    cookie("s", "a=1,2; sid=s; b={1,2}"),
    cookie("s", 'a="x y", "z"; sid=s'),
    cookie("s", "a=1 b=2; sid=s; c d=3"),
    cookie("v1,user-1", "sid=v1%2Cuser-1"),
    cookie("s", "$Version=1; sid=s; $Path=/"),
    cookie("s", 'sid="s'),
    cookie("s", 'sid=s"'),
    cookie("s", "sid=s%00"),
    cookie("s", "sid=\xc2\xa0s\xe2\x80\x83"),
    cookie("s", "sid=%C2%A0s"),
    cookie("s", "[sid]=s"),
    cookie("s", "sid[=s"),
    cookie("s", "sid%5b%5d=s"),
    cookie("s", "\xc2\xa0sid=s"),
    cookie("s", "+sid=s"),
    cookie("a b", "sid=a+b"),
    cookie("a b", "sid=a%20b"),
    cookie("S", "sid=S"),
    cookie("__proto__", "sid=__proto__"),
    cookie("a=b", "sid=a=b"),
    ...["", "sid", "sid=", 'sid=""', "sidx=s", "xsid=s", "=s", ";;;,,,"].map((text) =>
      cookie(ADDRESS, text),
    ),
    // Of two, servers take the first or the last: not one of them is safe to count by.
    cookie(ADDRESS, "sid=s; sid=1"),
    cookie(ADDRESS, "sid=2; sid=s"),
    cookie(ADDRESS, "sid=s; SID=3"),
    cookie(ADDRESS, "sid =s; sid=4"),
    cookie(ADDRESS, "sid=s", "sid=5"),
    cookie(ADDRESS, "sid=s, sid=6"),
    // Several fields arrive as one, joined by commas. Browsers send one, or parts that are joined by `;`.
    cookie(ADDRESS, "sid=s", "junk=1"),
    cookie(ADDRESS, "junk=1", "sid=s"),
    // What stands before the comma may be the same for all clients.
    ...["sid=v1,user-1", 'sid="v1,user-1"', 'sid={"v":1, "id":7}', "sid=s,", "a=1,sid=s"].map(
      (text) => cookie(ADDRESS, text),
    ),
    // Python's http.cookies divides pairs at white space, too.
    ...[
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
    ].map((text) => cookie(ADDRESS, text)),
    cookie("a b", 'sid="a b"'),
    cookie('a "b', 'sid="a \\"b"'),
    cookie(ADDRESS, 'x="; sid=s"; sid=7'),
    cookie("long", `sid=${LONG}`),
    cookie(ADDRESS, `${"sid=s;".repeat(5000)}`),

    query("q", "api_key=q"),
    query("q", "x=1&api_key=q&y=2"),
    query("q", "api_key=%71"),
    query("q", "api%5fkey=q"),
    query("q", "api_key=q#api_key=1"),
    query("q", "api_key=q%20"),
    query("q", "api_key=+q"),
    query("q", "api_key=q%00"),
    query("q", "api_key=%u0071"),
    query("q", "API_KEY=q"),
    query("q", "api.key=q"),
    query("q", "+api_key=q"),
    query("q", "api_key%00x=q"),
    query("q", "api_key[]=q"),
    query("q", "api_key[][0]=q"),
    query("q", "[api_key]=q"),
    query("q", "api[key=q"),
    query("q", "api%5Bkey=q"),
    query("q", "api_key[=q"),
    query("q", "%C2%A0api_key=q"),
    query("q", "api_key=%C2%A0q%E3%80%80"),
    query("q", "api_key=q%E2%80%8B"),
    query("q", "x=1;api_key=q"),
    query("Q", "api_key=Q"),
    query("__proto__", "api_key=__proto__"),
    ...["", "api_key", "api_key=", "api_key=%20", "xapi_key=q", "__proto__=q"].map((text) =>
      query(ADDRESS, text),
    ),
    query(ADDRESS, "api_key=q&api_key=1"),
    query(ADDRESS, "api_key=2&API_KEY=q"),
    query(ADDRESS, "api_key=3&api.key=q"),
    query(ADDRESS, "api_key=4&api%20key=q"),
    query(ADDRESS, "api_key=5&api_key[]=q"),
    query(ADDRESS, "api_key=6&[api_key]=q"),
    query(ADDRESS, "api_key=7&api[key=q"),
    // Rack 2 skips brackets of either kind in front of a name.
    ...["]api_key", "[]api_key", "][api_key", "%5D%5Bapi_key", "[][api_key]]", "[+]api_key"].map(
      (name) => query(ADDRESS, `api_key=8&${name}=q`),
    ),
    query(ADDRESS, `api_key=${LONG}b`),
    query(ADDRESS, "x=1;api_key=q&api_key=6"),
    query("long", `api_key=${LONG}`),
    query("last", `${"x=1&".repeat(5000)}api_key=last`),

    pair(["a, b", "a"], "two", "User: a", "Role: b"),
    pair(["ab, c", "ab"], "where one ends", "User: ab", "Role: c"),
    pair(["a, bc", "a"], "and the other begins", "User: a", "Role: bc"),
    pair(["a_role_b, c", "a_role_b"], "a delimiter in the one", "User: a_role_b", "Role: c"),
    pair(["a, b_role_c", "a"], "the same in the other", "User: a", "Role: b_role_c"),
    pair(["1:a, b", "1:a"], "a length in the one", "User: 1:a", "Role: b"),
    pair(["1, b", "1"], "a part of it", "User: 1", "Role: b"),
    pair(["a, none", "a"], "one is missing", "User: a"),
    pair(["none, a", "role a"], "the other is", "Role: a"),
    pair(["none, none", "none"], "both are"),
    pair(["address, none", "address"], "one is the address", "User: 203.0.113.7"),
    pair(["|", "|"], "a delimiter alone", "User: |", "Role: |"),
  ],
};
