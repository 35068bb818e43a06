const AT = Date.UTC(2026, 10, 22, 8, 0, 1);

/** One request as different programs log it: GET /a?b=c of 192.0.2.1 at `AT`. */
export const SAMPLES: readonly (readonly [program: string, record: object])[] = [
  [
    "nginx",
    {
      time_iso8601: "2026-11-22T09:00:01+01:00",
      remote_addr: "192.0.2.1",
      request_method: "GET",
      request_uri: "/a?b=c",
      args: "b=c",
      status: "200",
      http_host: "example.com:443",
      http_user_agent: "curl/8",
      http_referer: "",
      request_time: "0.250",
    },
  ],
  [
    "nginx with the request line",
    {
      time: "22/Nov/2026:08:00:01 +0000",
      remote_addr: "192.0.2.1",
      request: "GET /a?b=c HTTP/2.0",
      status: 200,
      host: "example.com",
      user_agent: "curl/8",
    },
  ],
  [
    "Caddy",
    {
      level: "info",
      ts: AT / 1000,
      logger: "http.log.access",
      request: {
        remote_ip: "198.51.100.1",
        client_ip: "192.0.2.1",
        method: "GET",
        host: "example.com",
        uri: "/a?b=c",
        headers: { "User-Agent": ["curl/8"], Cookie: ["REDACTED"] },
      },
      status: 200,
      duration: 0.25,
    },
  ],
  [
    "pino",
    {
      level: 30,
      time: AT,
      req: {
        method: "GET",
        url: "/a?b=c",
        headers: { host: "example.com", "user-agent": "curl/8" },
        remoteAddress: "::ffff:192.0.2.1",
      },
      res: { statusCode: 200, headers: {} },
      responseTime: 250,
    },
  ],
];
