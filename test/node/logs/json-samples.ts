const AT = Date.UTC(2026, 10, 22, 8, 0, 1);

/** One request as different programs log it: GET /a?b=c of 192.0.2.1 at `AT`, which took 250 ms. */
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
      duration_ms: 250,
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
      responseTime: 250,
    },
  ],
  [
    "Traefik",
    {
      time: "2026-11-22T08:00:02Z",
      StartUTC: "2026-11-22T08:00:01.000Z",
      ClientHost: "192.0.2.1",
      RequestMethod: "GET",
      RequestPath: "/a?b=c",
      RequestHost: "example.com",
      DownstreamStatus: 200,
      "request_User-Agent": "curl/8",
      latency_ms: 250,
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
  [
    "Elastic Common Schema",
    {
      "@timestamp": "2026-11-22T08:00:01Z",
      "client.ip": "192.0.2.1",
      http: { request: { method: "GET" }, response: { status_code: 200 } },
      url: { original: "/a?b=c", domain: "example.com" },
      user_agent: { original: "curl/8" },
      duration_ms: 250,
    },
  ],
  [
    "Google Cloud",
    {
      timestamp: "2026-11-22T08:00:01.000000000Z",
      httpRequest: {
        requestMethod: "GET",
        requestUrl: "https://example.com/a?b=c",
        remoteIp: "192.0.2.1",
        status: 200,
        userAgent: "curl/8",
      },
      duration_ms: 250,
    },
  ],
  [
    "a logstash pipeline",
    {
      "@timestamp": "2026-11-22T08:00:01.000Z",
      path: "access.log",
      clientip: "192.0.2.1",
      verb: "GET",
      request: "/a?b=c",
      response: "200",
      agent: "curl/8",
      vhost: "example.com",
      duration_ms: 250,
    },
  ],
];
