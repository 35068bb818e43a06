import { fieldMap } from "./field-map.ts";

/** Where programs write facts, in the order in which the paths are tried. */
export type FieldDefaults = Readonly<Record<string, readonly string[]>>;

/** The fields of Cloudflare's http_requests. ClientRequestBytes includes the header, so it is no body length. */
export const LOGPUSH_FIELDS = fieldMap([
  ["time", "EdgeStartTimestamp"],
  ["method", "ClientRequestMethod"],
  ["url", "ClientRequestURI"],
  ["host", "ClientRequestHost"],
  ["ip", "ClientIP"],
  ["status", "EdgeResponseStatus"],
  ["user-agent", "ClientRequestUserAgent"],
  ["header:referer", "ClientRequestReferer"],
  ["country", "ClientCountry"],
  ["asn", "ClientASN"],
  ["ja4", "JA4"],
  ["bot", "VerifiedBotCategory"],
]);

/** Each path of the defaults is that of nginx, Apache, Caddy, Traefik, Envoy, pino, ECS or Google Cloud. */
export const JSON_FIELDS: FieldDefaults = {
  time: [
    ...["StartUTC", "time", "timestamp", "ts", "@timestamp", "time_iso8601", "msec", "start_time"],
    ...["time_local", "datetime", "date", "Time"],
  ],
  method: [
    ...["request_method", "method", "RequestMethod", "request.method", "req.method"],
    ...["http.request.method", "http\\.request\\.method", "httpRequest.requestMethod", "verb"],
  ],
  url: [
    ...["request_uri", "uri", "url", "RequestPath", "request.uri", "request.url", "req.url"],
    ...["url.original", "url\\.original", "httpRequest.requestUrl", "request", "target", "path"],
  ],
  query: ["query", "query_string", "args"],
  request: ["request", "request_line"],
  host: [
    ...["http_host", "host", "RequestHost", "request.host", "authority", "req.headers.host"],
    ...["url.domain", "url\\.domain", "server_name", "vhost"],
  ],
  ip: [
    ...["client_ip", "clientip", "request.client_ip", "remote_addr", "remote_ip", "ClientHost"],
    ...["request.remote_ip", "ip", "req.remoteAddress", "client.ip", "client\\.ip", "source.ip"],
    ...["source\\.ip", "httpRequest.remoteIp", "remote_address", "client", "RemoteIP"],
  ],
  status: [
    ...["status", "DownstreamStatus", "res.statusCode", "response_code", "status_code"],
    ...[
      "http.response.status_code",
      "http\\.response\\.status_code",
      "httpRequest.status",
      "response",
    ],
  ],
  "user-agent": [
    ...["http_user_agent", "user_agent", "request_User-Agent", "request.headers.User-Agent"],
    ...["req.headers.user-agent", "user_agent.original", "user_agent\\.original"],
    ...["httpRequest.userAgent", "userAgent", "agent", "UserAgent"],
  ],
  "header:referer": [
    ...["http_referer", "referer", "request_Referer", "request.headers.Referer"],
    ...["req.headers.referer", "httpRequest.referer", "referrer"],
  ],
  country: ["country", "geoip_country_code", "cf_country", "http_cf_ipcountry"],
  asn: ["asn", "cf_asn"],
  ja4: ["ja4"],
  "body-bytes": ["body_bytes_received", "bytes_read"],
  duration: ["responseTime", "duration_ms", "latency_ms"],
  "duration-seconds": ["request_time"],
};

/** Objects with the header fields of requests, and of responses. */
export const HEADER_OBJECTS: readonly string[] = ["request.headers", "req.headers"];
export const RESPONSE_HEADER_OBJECTS: readonly string[] = ["resp_headers", "res.headers"];

/** The same objects of Cloudflare. They have the fields that the zone's custom fields name. */
export const LOGPUSH_HEADERS = "RequestHeaders";
export const LOGPUSH_RESPONSE_HEADERS = "ResponseHeaders";
export const LOGPUSH_COOKIES = "Cookies";
