import { createServer } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { listen } from "../../../dev/loopback.ts";
import { type RunningWorker, startWorker } from "../../node/support/worker.ts";
import { type RawAnswer, sendRaw } from "../target.ts";
import {
  type AdminVector,
  BEARER,
  csrfOf,
  freshAddress,
  get,
  JSON_TYPE,
  OVERRIDE,
  READ_TOKEN,
  SAME_ORIGIN,
  send,
  sessionOf,
  TOKEN,
} from "./vector.ts";
import {
  AUDIENCE,
  access,
  accessForgeries,
  TEAM,
  TEAM_KEYS,
  VALID,
  VALID_PROGRAM,
} from "./vectors/access.ts";
import { changes } from "./vectors/changes.ts";
import { paths } from "./vectors/paths.ts";
import { forgeries, sessions } from "./vectors/sessions.ts";
import { tokens } from "./vectors/tokens.ts";

/** What the origin has received: the method, the path and the body. */
let received: string[] = [];
/** The header fields that the origin has received. */
let receivedFields = "";
let origin: Awaited<ReturnType<typeof listen>>;
let worker: RunningWorker;

beforeAll(async () => {
  const server = createServer((request, response) => {
    if (request.url === "/cdn-cgi/access/certs") return response.end(JSON.stringify(TEAM_KEYS));
    receivedFields = request.rawHeaders.join("\n");
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      received.push(`${request.method} ${request.url} ${Buffer.concat(parts).toString("latin1")}`);
      response.writeHead(404, { "Content-Type": "text/plain" }).end("no such page");
    });
    return undefined;
  });
  origin = await listen(server);
  const address = `${origin.host}:${origin.port}`;
  worker = await startWorker({
    config: { rules: [{ name: "all", limit: 100_000, window: "1h", key: "global" }] },
    vars: {
      ORIGIN_URL: `http://${address}`,
      WEIR_ADMIN_TOKEN: TOKEN,
      WEIR_ADMIN_READ_TOKEN: READ_TOKEN,
      WEIR_ACCESS_TEAM: TEAM,
      WEIR_ACCESS_AUD: AUDIENCE,
    },
    zone: address,
  });
});

afterAll(async () => {
  await worker.stop();
  await origin.stop();
});

/** Sends a vector from a new address. */
async function answerTo(vector: AdminVector): Promise<RawAnswer & { received: string[] }> {
  received = [];
  const { line, fields = [], host = "api.example.com", body = "" } = vector;
  const usual = [`Host: ${host}`, `CF-Connecting-IP: ${freshAddress()}`, "Connection: close"];
  const answer = await sendRaw(worker.url, { lines: [line, ...usual, ...fields], body });
  return { ...answer, received };
}

/** Returns the parts of an answer that must not depend on whether a path exists. */
function visible({
  status,
  headers,
  text,
  received: requests,
}: RawAnswer & { received: string[] }) {
  const { date: _date, ratelimit: _quota, ...others } = headers;
  const body = text.slice(text.indexOf("\r\n\r\n") + 4);
  return { status, headers: others, body, requests: requests.map(renamed) };
}

/** Replaces the folder of operators by a folder that does not exist. */
function renamed(text: string): string {
  return text.replaceAll(/(?:_|%5f)weir/gi, "_none");
}

describe.each(Object.entries({ tokens, paths, sessions, access }))(
  "nobody sees the surface of operators by %s:",
  (_, vectors) => {
    it.each(vectors.map((each): [string, AdminVector] => [each.name, each]))(
      "%s",
      async (_name, vector) => {
        const answer = visible(await answerTo(vector));
        const fields = vector.fields?.map((each) =>
          /^(?:X-Original|X-Rewrite|Referer)/.test(each) ? renamed(each) : each,
        );
        const elsewhere = { ...vector, line: renamed(vector.line), fields: fields ?? [] };
        expect(answer).toEqual(visible(await answerTo(elsewhere)));
        expect(answer.body).not.toMatch(/"rules"|Weir/);
      },
    );
  },
);

describe.each(Object.entries({ forgeries, accessForgeries, changes }))(
  "nothing changes by %s:",
  (_, vectors) => {
    it.each(vectors.map((each): [string, AdminVector] => [each.name, each]))(
      "%s",
      async (_name, vector) => {
        const { status, received: requests } = await answerTo(vector);
        expect(status).toBe(vector.refused);
        expect(requests).toEqual([]);
        const list = await answerTo({
          name: "the overrides",
          line: "GET /_weir/api/overrides HTTP/1.1",
          fields: [BEARER],
        });
        expect(list.text).toContain('{"overrides":[]}');
      },
    );
  },
);

const session = sessionOf(TOKEN);
const readingSession = sessionOf(READ_TOKEN, "read");

describe("a valid credential opens the surface:", () => {
  it.each([
    ["a token", [BEARER]],
    ["a reading token", [`Authorization: Bearer ${READ_TOKEN}`]],
    ["a session", [`Cookie: ${session}`]],
    ["a reading session", [`Cookie: a=b; ${readingSession}`]],
    ["a user of Access", [`Cf-Access-Jwt-Assertion: ${VALID}`]],
    [
      "a user of Access who comes from the log-in page of Access",
      [
        `Cf-Access-Jwt-Assertion: ${VALID}`,
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Mode: navigate",
        "Sec-Fetch-Dest: document",
      ],
    ],
    ["a program of Access", [`Cf-Access-Jwt-Assertion: ${VALID_PROGRAM}`]],
  ])("%s", async (name, fields) => {
    const answer = await answerTo(get(name, ...fields));
    expect(answer.status).toBe(200);
    expect(answer.text).toContain('{"rules":[{"name":"all"');
    expect(answer.received).toEqual([]);
  });
});

describe("the origin never gets a credential of Weir, however the path is written:", () => {
  const spellings = [
    "/x\\..\\_weir/api/rules",
    "\\_weir\\api\\rules",
    "/\\_weir\\api",
    "/x/../_weir/api/rules",
    "/x/%2e%2e/_weir/none",
    "/x/..\\_weir%2fapi",
    "/_weir/..",
    "/_weir/../x",
    "/_weir\\..\\x",
    "/_weir/%2e%2e/x",
    "/_weir/%2e%2e%2fx",
    "/./_weir/x",
    "//_weir/api/rules",
    "//x/_weir/api/rules",
    "/x/..%2f_weir/api/rules",
    "/x/..%5c_weir/api/rules",
    "/x/..;/_weir/api/rules",
    "/%5fweir/api/rules",
    "/%5Fweir",
    "/%25255fweir/api",
    "/_weir%5capi",
    "/_weir;a=b/api",
    "/_weir%09/api",
    "/_weir%00/api",
    "/_weir?/x",
    "/_weir%3f/x",
    "/_Weir/",
    "/%EF%BC%BF%77eir/",
    "/_we%C4%B1r/",
    "/LONG/..%2f..%2f_weir/api",
    "/_weir/LONG%61",
    "http://api.example.com/x\\..\\_weir/api/none",
    "HTTP://API.example.com//_weir/x",
  ];

  it.each(spellings)("%s", async (path) => {
    const cookie = sessionOf(TOKEN);
    for (const fields of [
      [BEARER],
      ["Authorization: Basic abc", BEARER],
      [`Cookie: ${cookie}`],
      ["Cookie: a=b", `Cookie: ${cookie}`],
      [`Cookie: ${cookie}`, "Cookie: a=b"],
      [`Cf-Access-Jwt-Assertion: ${VALID}`, `Cookie: a=b; CF_Authorization=${VALID}`],
    ]) {
      receivedFields = "";
      await answerTo({ name: path, line: `POST ${target(path)} HTTP/1.1`, fields });
      for (const secret of [TOKEN, cookie, VALID]) expect(receivedFields).not.toContain(secret);
    }
  });

  it.each(["/x\\..\\_weir/api/rules", "/x/../_weir/./api/rules"])(
    "operators get the answer of the path that a URL parser reads: %s",
    async (path) => {
      const fields = ["Cookie: a=b", `Cookie: ${sessionOf(TOKEN)}`];
      for (const sent of [[BEARER], fields]) {
        const vector = { name: path, line: `GET ${target(path)} HTTP/1.1`, fields: sent };
        const { status, text, received: requests } = await answerTo(vector);
        expect([status, requests]).toEqual([200, []]);
        expect(text).toContain('{"rules":[{"name":"all"');
      }
    },
  );

  it.each(["/docs/_weir", "/a:b/_weir/x", "/_weirs", "/a%20b", "/?a=/_weir/", "/%5fweirs"])(
    "the site's own credentials reach it at %s",
    async (path) => {
      const fields = ["Authorization: Bearer own", "Cookie: a=1,2", "Cookie: c=d"];
      await answerTo({ name: path, line: `POST ${path} HTTP/1.1`, fields });
      expect(receivedFields).toMatch(/Bearer own/);
      expect(receivedFields).toMatch(/a=1,2/);
    },
  );

  /** A request line has no path that begins with a backslash, but the absolute form may have one. */
  function target(path: string): string {
    const written = path.replace("LONG", "a".repeat(4096));
    return written.startsWith("\\") ? `http://api.example.com${written}` : written;
  }
});

const HOSTILE = `"'><img src=x onerror=alert(1)><script>alert(2)</script>{{7*7}}\${7*7}javascript:alert(3)`;

describe("hostile text appears in pages as text only:", () => {
  const page = (path: string, ...fields: string[]): AdminVector => ({
    name: path,
    line: `GET ${path} HTTP/1.1`,
    fields: [BEARER, ...fields],
  });

  it("in the reason of an override, in the overview, the overrides and the audit list", async () => {
    const body = JSON.stringify({
      ...JSON.parse(OVERRIDE),
      effect: { factor: 2 },
      reason: HOSTILE,
    });
    const set = await answerTo(
      send("set", ["PUT", "/_weir/api/overrides"], body, BEARER, JSON_TYPE),
    );
    expect(set.status).toBe(200);
    for (const path of [
      "/_weir/",
      "/_weir/rules",
      "/_weir/rules/all",
      "/_weir/overrides",
      "/_weir/audit",
    ]) {
      const { status, text } = await answerTo(page(path));
      expect([path, status]).toEqual([path, 200]);
      expect(text).not.toMatch(/<img src=x|<script>alert/);
      expect(text).toMatch(/content-security-policy: default-src 'none'; script-src 'self'/i);
    }
    const { text } = await answerTo(page("/_weir/overrides"));
    expect(text).toContain("&lt;script&gt;alert(2)");
    const remove = JSON.stringify({ id: "all", why: HOSTILE });
    await answerTo(send("remove", ["DELETE", "/_weir/api/overrides"], remove, BEARER, JSON_TYPE));
  });

  it.each([
    ["a path", `/_weir/${encodeURIComponent(HOSTILE)}`],
    ["the name of a rule", `/_weir/rules/${encodeURIComponent(HOSTILE)}`],
    [
      "a query",
      `/_weir/clients?rule=${encodeURIComponent(HOSTILE)}&client=${encodeURIComponent(HOSTILE)}`,
    ],
    ["a query of the audit list", `/_weir/audit?before=${encodeURIComponent(HOSTILE)}`],
    ["a fault of the log-in", `/_weir/login?fault=${encodeURIComponent(HOSTILE)}`],
    ["a query of the API", `/_weir/api/statistics?resolution=${encodeURIComponent(HOSTILE)}`],
  ])("in %s", async (_, path) => {
    const agent = `User-Agent: ${HOSTILE}`;
    const { text, status } = await answerTo(page(path, agent, `Referer: http://a/${HOSTILE}`));
    expect(status).toBeLessThan(500);
    expect(text).not.toMatch(/<img src=x|<script>alert/);
  });

  it("in the values of a client", async () => {
    const cookie = sessionOf(TOKEN);
    const csrf = csrfOf(cookie, TOKEN);
    const body = new URLSearchParams({
      csrf,
      name: "ip",
      value: HOSTILE,
      known: HOSTILE,
    }).toString();
    const type = "Content-Type: application/x-www-form-urlencoded";
    const vector = send(
      "search",
      ["POST", "/_weir/clients"],
      body,
      `Cookie: ${cookie}`,
      type,
      ...SAME_ORIGIN,
    );
    const { text, status } = await answerTo(vector);
    expect(status).toBeLessThan(500);
    expect(text).not.toMatch(/<img src=x|<script>alert/);
  });
});

it("has at least 60 vectors", () => {
  expect(tokens.length + paths.length + sessions.length + access.length).toBeGreaterThan(60);
});
