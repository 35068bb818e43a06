import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ConfigInput } from "../../../src/config/index.ts";
import { type Outgoing, open, send } from "../support/client.ts";
import { type Origin, startOrigin } from "../support/origin.ts";
import { HOST, WAYS } from "../support/ways.ts";
import { echoFrames, HANDSHAKE } from "../support/websocket.ts";
import { type RunningWorker, startWorkers, type WorkerOptions } from "../support/worker.ts";

const CONFIG: ConfigInput = {
  store: "memory",
  rules: [
    { name: "all", limit: 1_000_000, window: "1h" },
    {
      name: "counted",
      match: { paths: ["/counted"] },
      limit: 1_000_000,
      window: "1h",
      cost: "header:x-cost",
    },
    { name: "open", match: { paths: ["/slots"] }, concurrent: 1000 },
    { name: "wide", match: { paths: ["/told"] }, limit: 9000, window: "1h", tellOrigin: true },
  ],
};
const OFF: ConfigInput = { ...CONFIG, forwarded: false };

/** A Worker whose clients use https, as the platform's own clients do. */
function overHttps(origin: string): string {
  return `
    import { weir, defineConfig, CounterObject } from "./weir.mjs";
    const handler = weir(defineConfig(${JSON.stringify(CONFIG)}));
    const env = { ORIGIN_URL: ${JSON.stringify(origin)} };
    export { CounterObject };
    export default {
      fetch: (request, _, ctx) =>
        handler.fetch(new Request(request.url.replace("http:", "https:"), request), env, ctx),
    };
  `;
}

/** A Worker with middleware, and one with its own handler. */
const APP = `
  import { Hono, rateLimit, weir, defineConfig, CounterObject } from "./weir.mjs";
  const config = defineConfig(${JSON.stringify(CONFIG)});
  const show = (request, headers = {}) => Response.json([...request.headers], { headers });
  const app = new Hono();
  app.use(rateLimit(config));
  app.get("/app", (c) => show(c.req.raw, { location: "http://origin.example/a" }));
  const handler = weir(config);
  export { CounterObject };
  export default {
    fetch: (request, env, ctx) =>
      request.url.endsWith("/app")
        ? app.fetch(request, env, ctx)
        : handler.fetch(request, env, ctx, (admitted) => show(admitted)),
  };
`;

let origin: Origin;
let other: Origin;
let workers: Map<string, RunningWorker>;
/** The header fields of all requests for a WebSocket. */
const upgrades: IncomingMessage["headers"][] = [];

beforeAll(async () => {
  [origin, other] = await Promise.all([startOrigin(), startOrigin()]);
  for (const each of [origin, other]) {
    each.onUpgrade((incoming, socket) => {
      upgrades.push(incoming.headers);
      echoFrames(incoming, socket);
    });
  }
  const origins = { "api.example": { url: other.url }, "app.example": { url: other.url } };
  const options = {
    ...Object.fromEntries(WAYS.map(({ way, options }) => [way, options(origin, CONFIG)])),
    ...Object.fromEntries(WAYS.map(({ way, options }) => [`${way}, off`, options(origin, OFF)])),
    "origin.url": { config: { ...CONFIG, origin: { url: origin.url } } },
    "origin.url, off": { config: { ...OFF, origin: { url: origin.url } } },
    origins: { config: { ...CONFIG, origins }, vars: { ORIGIN_URL: origin.url } },
    "a base path": { config: CONFIG, vars: { ORIGIN_URL: `${origin.url}/base` } },
    https: { config: CONFIG, main: overHttps(origin.url) },
    app: { config: CONFIG, main: APP },
    "no rules": { config: CONFIG, vars: { ORIGIN_URL: origin.url, WEIR_MODE: "off" } },
  } satisfies Record<string, WorkerOptions>;
  const running = await startWorkers(Object.values(options));
  workers = new Map(Object.keys(options).map((name, at) => [name, running[at] as RunningWorker]));
});

afterAll(async () => {
  await workers.get("https")?.stop();
  await Promise.all([origin.stop(), other.stop()]);
});

function urlOf(worker: string): URL {
  return (workers.get(worker) as RunningWorker).url;
}

function sendTo(worker: string, path: string, headers: Outgoing["headers"], more: Outgoing = {}) {
  return send(urlOf(worker), path, { ...more, headers: { Host: HOST, ...headers } });
}

/** Sends a request, and returns the header fields that the origin gets. */
async function arriving(worker: string, headers: Outgoing["headers"] = {}, path = "/fields") {
  expect((await sendTo(worker, path, headers)).status).toBe(200);
  return origin.received.at(-1)?.headers ?? {};
}

/** Fields in which servers read the scheme, the host, the port or the prefix that the client used. */
const FORGED = {
  "X-Forwarded-Host": "evil.example",
  "X-Forwarded-Proto": "ftp",
  "X-Forwarded-Protocol": "ftp",
  "X-Forwarded-Scheme": "ftp",
  "X-Forwarded-Ssl": "on",
  "X-Forwarded-Port": "666",
  "X-Forwarded-Prefix": "/evil",
  "X-Forwarded-Server": "evil.example",
  "X-Url-Scheme": "ftp",
  "Front-End-Https": "on",
  Forwarded: "for=1.2.3.4;host=evil.example;proto=ftp",
};
const OWN = { "x-forwarded-host": HOST, "x-forwarded-proto": "http" };

const URLS = ["ORIGIN_URL", "origin.url"];
const OTHERS = ["a route", "a service binding"];

describe.each([...URLS, ...OTHERS])("an origin behind %s", (way) => {
  it.each([
    [way, true],
    [`${way}, off`, OTHERS.includes(way)],
  ])("never gets the client's own fields: %s", async (worker, replaced) => {
    for (const separator of ["-", "_", ".", "!"]) {
      const forged = Object.fromEntries(
        Object.entries(FORGED).map(([name, value]) => [name.replaceAll("-", separator), value]),
      );
      const got = await arriving(worker, { ...forged, "X-Forwarded-For": "198.51.100.1" });
      const isSent = replaced && (separator === "-" || URLS.includes(way));
      const names = Object.keys(got).filter((name) => /forwarded|scheme|https/.test(name));
      expect(names.sort()).toEqual(["x-forwarded-for", ...(isSent ? Object.keys(OWN) : [])]);
      if (isSent) expect(got).toMatchObject(OWN);
    }
  });

  it("gets no such field without need", async () => {
    const isTold = URLS.includes(way);
    expect(JSON.stringify(await arriving(`${way}, off`))).not.toContain("forwarded");
    expect(JSON.stringify(await arriving(way)).includes("forwarded")).toBe(isTold);
  });
});

describe.each(URLS)("an origin behind %s", (way) => {
  it("gets the host and the scheme that the client used", async () => {
    expect(await arriving(way)).toMatchObject(OWN);
    expect(await arriving(way, {}, "/told")).toMatchObject(OWN);
  });

  it.each([
    ["shop.example:8443", "shop.example:8443"],
    ["shop.example:80", HOST],
    ["SHOP.Example", HOST],
    ["[::1]:8080", "[::1]:8080"],
  ])("gets the host of %s as browsers write it", async (host, expected) => {
    expect((await arriving(way, { Host: host }))["x-forwarded-host"]).toBe(expected);
  });
});

describe("the field X-Forwarded-Proto", () => {
  it("is https for a client that uses https, also if the origin does not", async () => {
    expect(await arriving("https")).toMatchObject({
      "x-forwarded-host": HOST,
      "x-forwarded-proto": "https",
      host: origin.address,
    });
  });
});

describe("an origin of many hosts", () => {
  it("can tell them apart", async () => {
    for (const Host of ["api.example", "app.example"]) {
      await sendTo("origins", "/", { Host });
      expect(other.received.at(-1)?.headers).toMatchObject({
        host: other.address,
        "x-forwarded-host": Host,
      });
    }
  });
});

describe("a request for a WebSocket", () => {
  it("has the fields too, and its response is not changed", async () => {
    const headers = { Host: HOST, ...HANDSHAKE, ...FORGED };
    const sent = open(urlOf("ORIGIN_URL"), "/socket", { headers }).end();
    const [response, socket] = (await once(sent, "upgrade")) as [IncomingMessage, Duplex];
    expect(response.statusCode).toBe(101);
    expect(upgrades.at(-1)).toMatchObject(OWN);
    expect(upgrades.at(-1)).not.toHaveProperty("forwarded");
    socket.destroy();
  });
});

describe("a deployment that applies no rule", () => {
  it("sends the fields, and forwards a request whose host is unclear", async () => {
    expect(await arriving("no rules", FORGED)).toMatchObject(OWN);
    const got = await arriving("no rules", { Host: "a b", ...FORGED });
    expect(got).not.toHaveProperty("x-forwarded-host");
  });
});

describe("an app with Weir in it", () => {
  it.each(["/app", "/next"])(
    "gets its request and gives its response unchanged: %s",
    async (path) => {
      const { body, headers } = await sendTo("app", path, { "X-Forwarded-Host": "proxy.example" });
      expect(JSON.parse(body.toString())).toContainEqual(["x-forwarded-host", "proxy.example"]);
      if (path === "/app") expect(headers.location).toBe("http://origin.example/a");
    },
  );
});

const NAMES = ["Location", "Content-Location", "Refresh", "Link"] as const;

/** Returns a field in which a server names a URL. */
function fieldWith(name: (typeof NAMES)[number], url: string): string {
  if (name === "Refresh") return `5; url=${url}`;
  return name === "Link" ? `<${url}>; rel="next", </x>; rel=prev` : url;
}

describe.each(NAMES)("a %s that names the origin", (name) => {
  it.each(["ORIGIN_URL", "origin.url"])("leads back to the client's host: %s", async (worker) => {
    origin.on("/moved", (_, response) =>
      response.writeHead(302, { [name]: fieldWith(name, `${origin.url}/a%2Fb?c=1#d`) }).end("body"),
    );
    const answer = await sendTo(worker, "/moved", { Host: "shop.example:8443" });
    expect(answer).toMatchObject({ status: 302, body: Buffer.from("body") });
    const expected = fieldWith(name, "http://shop.example:8443/a%2Fb?c=1#d");
    expect(answer.headers[name.toLowerCase()]).toBe(expected);
  });

  it.each(["ORIGIN_URL, off", "origin.url, off", "a route", "a service binding"])(
    "stays as it is: %s",
    async (worker) => {
      const value = fieldWith(name, `${origin.url}/a`);
      origin.on("/moved", (_, response) => response.writeHead(302, { [name]: value }).end());
      const { headers } = await sendTo(worker, "/moved", {});
      expect(headers[name.toLowerCase()]).toBe(value);
    },
  );
});

describe("a Location", () => {
  /** Returns the Location that the client gets. */
  async function locationOf(
    worker: string,
    value: string | string[],
    path = "/at",
    method = "GET",
  ) {
    const status = 201;
    origin.on(path, (_, response) => response.writeHead(status, { Location: value }).end());
    origin.on(`/base${path}`, (_, response) =>
      response.writeHead(status, { Location: value }).end(),
    );
    const answer = await sendTo(worker, path, {}, { method });
    expect(answer.status).toBe(status);
    return answer.headers.location;
  }

  it("names the client's scheme", async () => {
    expect(await locationOf("https", `${origin.url}/a`)).toBe(`https://${HOST}/a`);
    expect(await locationOf("https", `//${origin.address}/a`)).toBe(`//${HOST}/a`);
  });

  it("of a response to HEAD is turned back too", async () => {
    expect(await locationOf("ORIGIN_URL", `${origin.url}/a`, "/at", "HEAD")).toBe(
      `http://${HOST}/a`,
    );
  });

  it("of a response that Weir reads or waits for is turned back too", async () => {
    for (const path of ["/counted", "/slots"]) {
      expect(await locationOf("ORIGIN_URL", `${origin.url}/a`, path)).toBe(`http://${HOST}/a`);
    }
  });

  it("of another origin is not changed", async () => {
    expect(await locationOf("ORIGIN_URL", `${other.url}/a`)).toBe(`${other.url}/a`);
    other.on("/at", (_, response) => response.writeHead(302, { Location: origin.url }).end());
    const { headers } = await sendTo("origins", "/at", { Host: "api.example" });
    expect(headers.location).toBe(origin.url);
  });

  it("that is sent twice is turned back twice", async () => {
    expect(await locationOf("ORIGIN_URL", [`${origin.url}/a`, `${origin.url}/b`])).toBe(
      `http://${HOST}/a, http://${HOST}/b`,
    );
  });

  it("below the origin's base path loses the base path, and others are not changed", async () => {
    const worker = "a base path";
    expect(await locationOf(worker, `${origin.url}/base/a?b`)).toBe(`http://${HOST}/a?b`);
    expect(await locationOf(worker, `${origin.url}/base`)).toBe(`http://${HOST}/`);
    for (const path of ["", "/", "/bases", "/other", "/BASE/a"]) {
      expect(await locationOf(worker, origin.url + path)).toBe(origin.url + path);
    }
  });

  it("keeps bytes that are not ASCII", async () => {
    const bytes = Buffer.from("/caf\u00e9?\u00fc", "utf8").toString("latin1");
    expect(await locationOf("ORIGIN_URL", origin.url + bytes)).toBe(`http://${HOST}${bytes}`);
  });

  it("is not changed if it has bytes that are not UTF-8", async () => {
    const value = `${origin.url}/caf\u00e9`;
    expect(await locationOf("ORIGIN_URL", value)).toBe(value);
  });

  it("leaves the rest of its response as it is", async () => {
    const body = gzipSync("compressed");
    const fields = {
      "Content-Encoding": "gzip",
      "Content-Length": `${body.length}`,
      "Set-Cookie": ["a=1; Path=/", "b=2"],
      ETag: '"1"',
    };
    origin.on("/whole", (_, response) =>
      response.writeHead(201, { Location: `${origin.url}/a`, ...fields }).end(body),
    );
    const answer = await sendTo("ORIGIN_URL", "/whole", { "Accept-Encoding": "gzip" });
    expect(answer).toMatchObject({ status: 201, body });
    expect(answer.headers).toMatchObject({
      location: `http://${HOST}/a`,
      "content-encoding": "gzip",
      "content-length": `${body.length}`,
      "set-cookie": fields["Set-Cookie"],
      etag: '"1"',
    });
  });

  it.each([304, 999])("of a response with status %d does not make it fail", async (status) => {
    origin.on("/odd", (_, response) =>
      response.writeHead(status, { Location: `${origin.url}/a` }).end(),
    );
    expect((await sendTo("ORIGIN_URL", "/odd", {})).status).toBe(status);
  });
});
