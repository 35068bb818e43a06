import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, expect, it, test } from "vitest";
import { OTHER_FORMATS } from "../../../cli/logs/other-formats.ts";
import { accessLine, logFolder, readLogs } from "./log-folder.ts";

const logOf = logFolder();
const AT = Date.UTC(2026, 10, 22, 8, 0, 1);
const LINE = `192.0.2.1 - - [22/Nov/2026:08:00:01 +0000] "GET /a?b=c HTTP/1.1" 404 17 "-" "curl/8"`;
const REQUEST = { at: AT, method: "GET", target: "/a?b=c", ip: "192.0.2.1", status: 404 };

/** Lines of one request in each format, and what they state beside {@link REQUEST}. */
const SAMPLES: readonly (readonly [string, string, object])[] = [
  [
    "a load balancer of AWS (ALB)",
    'https 2026-11-22T08:00:01.000000Z app/web/50dc6c495c0c9188 192.0.2.1:2817 10.0.0.1:80 0.086 0.048 0.037 404 404 34 17 "GET https://www.example.com:443/a?b=c HTTP/1.1" "curl/8" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:x "Root=1-58337281" "www.example.com" "-" 0 2026-11-22T08:00:00.9Z "forward" "-" "-" "10.0.0.1:80" "404" "-" "-"',
    { host: "www.example.com" },
  ],
  [
    "CloudFront",
    `#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header\n${[
      ...["2026-11-22", "08:00:01", "FRA2", "17", "192.0.2.1", "GET", "d1.cloudfront.net", "/a"],
      ...["404", "-", "curl/8", "b=c", "-", "Miss", "abc==", "www.example.com"],
    ].join("\t")}`,
    { host: "www.example.com" },
  ],
  [
    "IIS, with its default fields",
    "#Software: Microsoft Internet Information Services 10.0\n#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(Referer) sc-status sc-substatus sc-win32-status time-taken\n2026-11-22 08:00:01 10.0.0.1 GET /a b=c 443 - 192.0.2.1 curl/8 - 404 0 2 15",
    {},
  ],
  [
    "HAProxy, with times in UTC",
    'Nov 22 08:00:01 lb haproxy[14389]: 192.0.2.1:33317 [22/Nov/2026:08:00:01.000] http-in static/srv1 10/0/30/69/109 404 17 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} "GET /a?b=c HTTP/1.1"',
    {},
  ],
  [
    "Docker's json-file",
    JSON.stringify({ log: `${LINE}\n`, stream: "stdout", time: "2026-11-22T08:00:01.5Z" }),
    {},
  ],
  ["containerd or CRI-O", `2026-11-22T08:00:01.123456789Z stdout F ${LINE}`, {}],
  ["docker logs -t or kubectl logs --timestamps", `2026-11-22T08:00:01.123456789Z ${LINE}`, {}],
  ["docker compose or kubectl with prefixes", `web-1  | ${LINE}`, {}],
  ["docker compose or kubectl with prefixes", `[pod/nginx-7d9/nginx] ${LINE}`, {}],
  ["syslog", `Nov 22 08:00:01 web1 nginx: ${LINE}`, {}],
  ["syslog", `<190>Nov  2 08:00:01 web1 nginx[12]: ${LINE}`, {}],
  ["syslog", `2026-11-22T08:00:01+00:00 web1 nginx: ${LINE}`, {}],
  ["syslog", `<190>1 2026-11-22T08:00:01.003Z web1 nginx 12 - - ${LINE}`, {}],
];

const hasJq = (() => {
  try {
    return execFileSync("jq", ["--version"]).length > 0;
  } catch {
    return false;
  }
})();

describe("a log in a format that is not read", () => {
  it.each(SAMPLES)("is refused with a command that converts it: %s", async (name, text, more) => {
    const file = await logOf(`other-${name.replace(/\W+/g, "-")}`, `${text}\n`);
    const error = await readLogs([file]).catch((each) => each);
    expect(error.message).toContain(`its lines are as ${name} writes them. Convert them: `);
    const [, command = ""] = /Convert them: (.*) \| npx weir replay -$/.exec(error.message) ?? [];
    if (command.startsWith("jq") && !hasJq) return;
    const converted = execFileSync("sh", ["-c", command]);
    const { requests, progress } = await readLogs([await logOf("converted.log", converted)]);
    expect(progress).toMatchObject({ requests: 1, broken: 0 });
    expect(requests).toMatchObject([{ ...REQUEST, ...more }]);
  });

  test("is named in docs/replay.md", () => {
    const [, list = ""] = readFileSync("docs/replay.md", "utf8").split("**Other formats**");
    const text = list.replaceAll(/\s+/g, " ");
    expect(OTHER_FORMATS.filter(({ name }) => !text.includes(name))).toEqual([]);
  });

  it("is decompressed by the command if it is compressed, and may have any name", async () => {
    const file = await logOf("a 'log'.gz", `web-1  | ${LINE}`);
    await expect(readLogs([file])).rejects.toThrow(
      /Convert them: zcat '.*\/a '\\''log'\\''\.gz' \| sed -E '.*' \| npx weir replay -$/,
    );
  });
});

describe("the reason for an unreadable first line", () => {
  it.each([
    ["proxy - - [22/Nov/2026:08:00:01 +0000]", "Line 1 does not begin with an IP address"],
    [`\n${LINE.replace("22/Nov", "32/Nov")}`, "Line 2 has no time such as [17/May/2015"],
    [`192.0.2.1 10.0.0.7 - - ${LINE.slice(14)}`, "Line 1 begins with two addresses"],
    ['{"request":"GET /?a=\\x22 HTTP/1.1"}', "write escape=json in nginx's log_format"],
    ['{\n  "outcome": "ok",\n  "logs": []\n}', "pass the log through jq -c"],
    ['{"time": 1,\n "method": "GET"\n}', "pass the log through jq -c"],
    ['[\n  {\n    "time": 1\n  }\n]', "pass the log through jq -c '.[]'"],
    ['[{"time":1},{"time":2}]', "pass it through jq -c '.[]'"],
    ["time,method\n1,GET", "Line 1 has no fields"],
  ])("is in the message: %j", async (text, reason) => {
    await expect(readLogs([await logOf("unreadable", text)])).rejects.toThrow(reason);
  });

  it("is counted for single lines of nginx without escape=json", async () => {
    const record = { time: AT, remote_addr: "192.0.2.1", request: "GET /a HTTP/1.1" };
    const line = JSON.stringify(record);
    const { progress } = await readLogs([
      await logOf("escapes", `${line}\n${line.replace("/a", "/\\x22")}`),
    ]);
    expect(progress).toMatchObject({ requests: 1, broken: 1 });
    expect(progress.brokenLines[0]?.reason).toContain("escape=json");
  });
});

describe("a log that begins with much else", () => {
  const garbage = `${LINE.replace(/"GET.*?"/, '"\\x16\\x03\\x01\\x02"').replace("404", "400")}\n`;

  it.each([
    ["garbage requests", garbage, `${LINE}\n`],
    ["messages", '{"level":"info","msg":"started"}\n', recordLine()],
    ["lines of another program", `${"x".repeat(200)}\n`, `${LINE}\n`],
  ])("is recognised after 256 KiB of %s", async (_, part, line) => {
    const start = part.repeat(Math.ceil((256 * 1024) / part.length));
    const { requests, facts } = await readLogs([await logOf("late", start + line.repeat(3))]);
    expect(requests).toHaveLength(3);
    for (const fact of ["ip", "status", "header:user-agent"]) expect(facts).toContain(fact);
  });
});

function recordLine() {
  const record = {
    time: AT,
    method: "GET",
    url: "/a",
    ip: "192.0.2.1",
    status: 200,
    user_agent: "a",
  };
  return `${JSON.stringify(record)}\n`;
}

describe("a fact of each request", () => {
  const request = (id: number) => ({
    ...{ time: AT + id, reqId: id, msg: "incoming request" },
    req: { method: "POST", url: "/login", remoteAddress: "192.0.2.1", hostname: "example.com" },
  });
  const response = (id: number) => ({
    ...{ time: AT + id + 12, reqId: id, msg: "request completed" },
    ...{ res: { statusCode: 401, headers: { "x-cost": "3" } }, responseTime: 12 },
  });
  const factsOf = async (records: readonly object[], map?: Record<string, string>) => {
    const file = await logOf("facts", records.map((each) => JSON.stringify(each)).join("\n"));
    const options = map ? { map: new Map(Object.entries(map)) } : {};
    return readLogs([file], { withDurations: true, ...options });
  };

  it("is not logged if only the record of the response has it", async () => {
    const records = [1, 2, 3].flatMap((id) => [request(id), response(id)]);
    for (const map of [undefined, { status: "res.statusCode" }]) {
      const { facts, progress } = await factsOf(records, map);
      expect(facts).toEqual(new Set(["host", "ip", "method", "time", "url"]));
      expect(progress).toMatchObject({ requests: 3, ignored: 3 });
      expect(progress.notes).toEqual([
        expect.stringContaining("log one record for a request, when it is answered"),
      ]);
    }
  });

  it("is not logged if both records have the URL, but only one the status", async () => {
    const both = { ...request(1), ...response(1) };
    const { facts, progress } = await factsOf([request(1), both]);
    for (const fact of ["status", "duration"]) expect(facts).not.toContain(fact);
    expect(progress.notes).toEqual([expect.stringContaining("it may count twice")]);
  });

  it("is logged if the only record of a request has it", async () => {
    const { facts, progress } = await factsOf([{ ...request(1), ...response(1) }]);
    for (const fact of ["status", "duration", "response-header:x-cost"]) {
      expect(facts).toContain(fact);
    }
    expect(progress.notes).toEqual([]);
  });
});

it("reads what wrangler tail prints, through jq -c", async () => {
  const record = {
    ...{ outcome: "ok", eventTimestamp: AT, wallTime: 30, logs: [] },
    event: {
      request: {
        ...{ method: "GET", url: "https://api.example.com/a?b=c", cf: { country: "DE", asn: 1 } },
        headers: { "cf-connecting-ip": "192.0.2.1", "x-api-key": "k" },
      },
      response: { status: 404 },
    },
  };
  const { requests, facts } = await readLogs([await logOf("tail", JSON.stringify(record))], {
    withDurations: true,
  });
  expect(requests).toMatchObject([{ ...REQUEST, host: "api.example.com", durationMs: 30 }]);
  for (const fact of ["header:x-api-key", "country", "duration"]) expect(facts).toContain(fact);
});

it("counts an absolute URL under its own host, also with --host and a virtual host", async () => {
  const lines = [
    accessLine("192.0.2.1", "10:00:00", "http://shop.example/a"),
    `www.example.com ${accessLine("192.0.2.1", "10:00:00", "http://shop.example:8080/a")}`,
    accessLine("192.0.2.1", "10:00:00"),
  ];
  const record = { time: AT, method: "GET", url: "http://shop.example/", host: "www.example.com" };
  const files = [
    await logOf("own.log", lines.join("\n")),
    await logOf("own.jsonl", JSON.stringify(record)),
  ];
  const { requests } = await readLogs(files, { host: "api.example.com" });
  expect(requests.map(({ host }) => host).sort()).toEqual([
    ...["api.example.com", "shop.example", "shop.example", "shop.example"],
  ]);
});
