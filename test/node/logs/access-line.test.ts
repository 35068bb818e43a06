import { describe, expect, it } from "vitest";
import { AccessLineParser } from "../../../cli/logs/access-line.ts";
import { cpuTimeMs } from "../../../fuzz/property.ts";

const TIME = "[17/May/2015:10:05:03 +0000]";
const AT = Date.UTC(2015, 4, 17, 10, 5, 3);

const parse = (line: string, host?: string) => new AccessLineParser(host).parse(line);
/** Parses a line in Common Log Format with this request. */
const ofRequest = (request: string) => parse(`192.0.2.1 - - ${TIME} "${request}" 200 5`);

describe("a line of an access log", () => {
  it("has an address, a time, a request and a status in Common Log Format", () => {
    expect(parse(`192.0.2.1 - - ${TIME} "POST /a?b=c HTTP/1.1" 201 5`)).toEqual({
      at: AT,
      method: "POST",
      target: "/a?b=c",
      host: undefined,
      ip: "192.0.2.1",
      status: 201,
      headers: undefined,
    });
  });

  it.each([
    [
      "the referer and the user agent",
      '"https://example.com/" "Mozilla/5.0 (X11)"',
      ["https://example.com/", "Mozilla/5.0 (X11)"],
    ],
    ["neither of them", '"-" "-"', [undefined, undefined]],
    ["fields after them", '"-" "curl/8" "198.51.100.1" 0.003 0.002 .', [undefined, "curl/8"]],
    [
      "escaped quotes",
      '"https://example.com/\\"a\\"" "a \\"quoted\\" agent"',
      ['https://example.com/"a"', 'a "quoted" agent'],
    ],
    [
      "quotes that the server did not escape",
      '"-" "an o"d"d agent"',
      [undefined, 'an o"d"d agent'],
    ],
    ["a backslash at the end", '"-" "agent\\\\"', [undefined, "agent\\"]],
    ["nginx's escapes of UTF-8", '"-" "caf\\xC3\\xA9 \\x22"', [undefined, 'café "']],
    ["other backslashes", '"-" "C:\\Windows \\xZZ"', [undefined, "C:\\Windows \\xZZ"]],
    ["escapes that are not needed", '"-" "a\\tb"', [undefined, "a\\tb"]],
    ["a user agent that is cut off", '"-" "Mozilla/5.0 (comp', [undefined, "Mozilla/5.0 (comp"]],
    ["a referer that is cut off", '"https://exam', [undefined, undefined]],
    ["one other quoted field", '"198.51.100.1"', [undefined, undefined]],
    ["empty fields", '"" ""', ["", ""]],
  ])("may have %s", (_, fields, [referer, userAgent]) => {
    const content = parse(`192.0.2.1 - - ${TIME} "GET / HTTP/1.1" 200 5 ${fields}`);
    expect(content).toMatchObject({ status: 200 });
    const { headers } = content as { headers?: Map<string, string> };
    expect([headers?.get("referer"), headers?.get("user-agent")]).toEqual([referer, userAgent]);
  });

  it.each([
    ["192.0.2.1", "192.0.2.1"],
    ["2001:DB8:0::1", "2001:db8::1"],
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["::ffff:c000:0201", "192.0.2.1"],
    ["192.0.2.1:5678", "192.0.2.1"],
    ["[2001:db8::1]:443", "2001:db8::1"],
    ["fe80::1%eth0", "fe80::1"],
  ])("may begin with the address %s", (text, ip) => {
    expect(parse(`${text} - - ${TIME} "GET / HTTP/1.1" 200 5`)).toMatchObject({ ip });
  });

  it.each([
    "client.example.com",
    "-",
    "unix:",
    "192.0.2",
    "192.0.2.256",
    "192.0.2.01",
    "192.0.2.1.",
    "1.2.3.4.5",
    "2001:db8::1::",
    ".1.2.3",
  ])("is broken if it begins with %s", (text) => {
    expect(parse(`${text} - - ${TIME} "GET / HTTP/1.1" 200 5`)).toMatch(/IP address/);
  });

  it.each([
    ["www.Example.com:443", "www.example.com"],
    ["example.com", "example.com"],
    ["192.0.2.9:80", "192.0.2.9"],
    ["[2001:db8::9]:80", "[2001:db8::9]"],
  ])("may have the virtual host %s before the address", (text, host) => {
    const content = parse(`${text} 192.0.2.1 - - ${TIME} "GET / HTTP/1.1" 200 5`, "other.example");
    expect(content).toMatchObject({ host, ip: "192.0.2.1" });
  });

  it.each(["ann", "Ann Lee", '"Ann Lee"', "a[b]", "[1] [2]", "192.0.2", "ann 192.0.2.7"])(
    "may have the user %s",
    (user) => {
      expect(parse(`192.0.2.1 - ${user} ${TIME} "GET / HTTP/1.1" 200 5`)).toMatchObject({
        at: AT,
        ip: "192.0.2.1",
      });
    },
  );

  it.each([
    ["192.0.2.1, 10.0.0.7", undefined],
    ["192.0.2.1,10.0.0.7", undefined],
    ["192.0.2.1, 2001:db8::7, 10.0.0.7", undefined],
    ["example.com 192.0.2.1, 10.0.0.7", "example.com"],
  ])("has the first address of the list %s", (list, host) => {
    expect(parse(`${list} - - ${TIME} "GET / HTTP/1.1" 200 5`)).toMatchObject({
      ...{ ip: "192.0.2.1", host },
    });
  });

  it.each([
    ["unknown, 10.0.0.7", "does not begin with an IP address"],
    ["-, 10.0.0.7", "does not begin with an IP address"],
    ["- 10.0.0.7", "does not begin with an IP address"],
    ["192.0.2.1 10.0.0.7", "begins with two addresses"],
    ["2001:db8::1 10.0.0.7", "begins with two addresses"],
    ["example.com 192.0.2.1 10.0.0.7", "begins with two addresses"],
    ["a.example b.example 10.0.0.7", "does not begin with an IP address"],
  ])("is broken if the client is unclear: %s", (fields, reason) => {
    expect(parse(`${fields} - - ${TIME} "GET / HTTP/1.1" 200 5`)).toContain(reason);
  });

  it("gets the host of the options if it has none", () => {
    expect(parse(`192.0.2.1 - - ${TIME} "GET / HTTP/1.1" 200 5`, "example.com")).toMatchObject({
      host: "example.com",
    });
  });
});

describe("the request of a line", () => {
  it.each([
    ["GET / HTTP/1.1", "GET", "/"],
    ["GET /", "GET", "/"],
    ["get /a HTTP/2.0", "get", "/a"],
    ["PROPFIND /dav/ HTTP/1.1", "PROPFIND", "/dav/"],
    ["GET http://example.com/a?b HTTP/1.1", "GET", "/a?b"],
    ["GET https://example.com HTTP/1.1", "GET", "/"],
    ["GET http://example.com?a=1 HTTP/1.1", "GET", "/?a=1"],
    ["GET //a/../b HTTP/1.1", "GET", "//a/../b"],
    ['GET /\\"a\\" HTTP/1.1', "GET", '/"a"'],
    ["GET /caf\\xC3\\xA9 HTTP/1.1", "GET", "/café"],
  ])("may be %s", (request, method, target) => {
    expect(ofRequest(request)).toMatchObject({ method, target });
  });

  it("counts under the host of an absolute URL", () => {
    const line = `example.com 192.0.2.1 - - ${TIME} "GET http://Shop.example:80/a HTTP/1.1" 200 5`;
    expect(parse(line, "other.example")).toMatchObject({ host: "shop.example", target: "/a" });
  });

  it.each(["-", "", "OPTIONS * HTTP/1.0", "CONNECT example.com:443 HTTP/1.1"])(
    "is ignored if it is %j, because it has no path",
    (request) => {
      expect(ofRequest(request)).toBeUndefined();
    },
  );

  it.each([
    "\\x16\\x03\\x01\\x02\\x00\\x01",
    "\\x16\\x03 /",
    "GET",
    "GET example.com HTTP/1.1",
    "GET  / HTTP/1.1",
    "GET /a b HTTP/1.1",
    "GET / HTTP/1.1 x",
    "GET / FTP/1.1",
    " / HTTP/1.1",
    `${"A".repeat(33)} / HTTP/1.1`,
  ])("is broken if it is %j", (request) => {
    expect(ofRequest(request)).toMatch(/^its request /);
  });
});

describe("a broken line", () => {
  it.each([
    ["", "has no fields"],
    ["hello", "has no fields"],
    ["x".repeat(50), "has no fields"],
    [`192.0.2.1 - - ${"x".repeat(50)}`, "has no time"],
    [`192.0.2.1 - - ${TIME}`, "a request in quotes after it"],
    [`192.0.2.1 - - ${TIME} GET / HTTP/1.1 200 5`, "a request in quotes after it"],
    [`192.0.2.1 - - ${TIME} "GET / HTTP/1.1`, "has no end of its request"],
    [`192.0.2.1 - - ${TIME} "GET / HTTP/1.1"`, "has no status"],
    [`192.0.2.1 - - ${TIME} "GET / HTTP/1.1" 200`, "has no status"],
    [`192.0.2.1 - - ${TIME} "GET / HTTP/1.1" 2oo 5`, "has no status"],
    [`192.0.2.1 - - ${TIME} "GET / HTTP/1.1" 200 x`, "has no status"],
    ["\0".repeat(50), "has no fields"],
  ])("%j: %s", (line, reason) => {
    expect(parse(line)).toContain(reason);
  });

  it("is found in time that grows linearly with its length", () => {
    const many = ["[", "] ", '"', "\\", '\\"', " ", '] "', '[] "'].map((part) =>
      part.repeat(30_000),
    );
    const start = cpuTimeMs();
    for (const text of many) {
      for (const line of [text, `192.0.2.1 ${text}`, `192.0.2.1 - - ${TIME} "${text}`]) parse(line);
    }
    expect(cpuTimeMs() - start).toBeLessThan(2000);
  });
});

describe("facts of an access log", () => {
  const COMMON = `192.0.2.1 - - ${TIME} "GET / HTTP/1.1" 200 5`;
  const facts = (lines: readonly string[], host?: string) => {
    const parser = new AccessLineParser(host);
    for (const line of lines) parser.parse(line);
    return [...parser.facts()].sort();
  };
  const COMBINED = ["header:referer", "header:user-agent"];
  const ABSOLUTE = `192.0.2.1 - - ${TIME} "GET http://example.com/ HTTP/1.1" 200 5`;
  const GARBAGE = `192.0.2.1 - - ${TIME} "\\x16\\x03\\x01" 400 5`;

  it.each([
    ["common", [COMMON], undefined, [], false],
    ["combined", [`${COMMON} "-" "-"`], undefined, COMBINED, false],
    [
      "combined with a line that is cut off",
      [`${COMMON} "-" "-"`, `${COMMON} "htt`],
      undefined,
      COMBINED,
      false,
    ],
    ["both formats", [`${COMMON} "-" "-"`, COMMON], undefined, [], false],
    ["a virtual host", [`example.com ${COMMON}`], undefined, [], true],
    ["a virtual host in some lines", [`example.com ${COMMON}`, COMMON], undefined, [], false],
    ["a given host", [COMMON], "example.com", [], true],
    ["broken lines only", ["hello"], undefined, [], false],
    ["absolute URLs", [ABSOLUTE, ABSOLUTE], undefined, [], true],
    ["an absolute URL in some lines", [ABSOLUTE, COMMON], undefined, [], false],
    ["requests that are not HTTP", [`${GARBAGE} "-" "-"`], undefined, COMBINED, false],
    [
      "requests that are not HTTP, with a virtual host",
      [`example.com ${GARBAGE}`],
      undefined,
      [],
      true,
    ],
  ])("in %s", (_, lines, given, headers, host) => {
    expect(facts(lines, given)).toEqual(
      [...headers, ...(host ? ["host"] : []), "ip", "status"].sort(),
    );
  });
});
