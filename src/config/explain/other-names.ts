/** A kind of object with fields that other limiters name differently, or that users write in the wrong place. */
export type Place = "config" | "rule" | "limits" | "match" | "tiers";

/**
 * The names that other limiters and users give to Weir's fields, in lower case and without separators. The limiters
 * are @upstash/ratelimit, hono-rate-limiter, express-rate-limit, rate-limiter-flexible, Kong, Envoy, nginx,
 * Cloudflare and Arcjet. The key is Weir's field, or a path to this field from the same object. If Weir has no such
 * field, the key is advice: a text with spaces.
 */
export const FIELDS_OF_OTHERS: Readonly<Record<Place, Readonly<Record<string, string>>>> = {
  config: {
    rules: "rule limiters ratelimits ratelimit ratelimitrules policies routes config configs",
    timeoutMs: "timeout timeoutmillis timeoutinms deadline redistimeout storetimeout",
    headers:
      "standardheaders legacyheaders enableheaders setheaders sendheaders responseheaders draft hideclientheaders enablexratelimitheaders",
    prefix: "keyprefix namespace redisprefix storeprefix",
    origin: "upstream target backend proxy proxypass originurl server destination",
    origins: "upstreams backends targets proxies originbyhost originsbyhost hostorigins hosts",
    forwarded:
      "xforwarded xforwardedhost xforwardedproto forwardedheaders proxyredirect changeorigin autorewrite hostrewrite",
    store: "storage driver database db policy",
    ipv6Prefix: "ipv6subnet ipv6mask ipv6 subnet ipv6prefixlength",
    jwt: "jwks auth jwtsecret issuer",
    "custom.keys": "keys keyfunctions functions customkeys",
    "set the secrets UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN instead":
      "url token upstash redisurl redistoken upstashurl upstashredisresturl upstashredisresttoken connection redis",
    "remove it: Weir takes the client's address from Cloudflare":
      "trustproxy proxies trustedproxies",
    "remove it: Weir logs failures and denials, see docs/responses.md":
      "analytics logging log logger metrics",
  },
  rule: {
    limit:
      "max quota requests points tokens rate maxrequests maxreqs requestsperunit requestsperperiod hits calls threshold amount allowed maxhits refillrate maxcalls ratelimit count limitmax",
    window:
      "windowms windowsize windowlength duration interval period ttl timewindow timeframe unit per seconds fillinterval refillinterval windowseconds windowinseconds periodseconds windowsec durationms every time",
    limits: "windows quotas rates limiters bands",
    concurrent:
      "concurrency maxconcurrent maxconcurrency maxconnections limitconn conn inflight maxinflight slots parallel maxparallel",
    "write capacity for quota of earlier windows: it includes the limit":
      "burst burstsize burstlimit maxtokens bucketsize bucketcapacity nodelay maxburst",
    ban: "bans banlengths banlist blockdurations strikes escalation blockduration blockfor banfor banduration block penalty penaltytime cooldown mitigationtimeout lockout jail bantime inmemoryblockduration delay",
    key: "keys by keygenerator keyby keyfn getkey identifier limitby characteristics identifyby groupby discriminator zone",
    name: "id label title ruleid rulename policyname descriptor",
    "match.paths":
      "path paths route routes url urls uri uris pathname pattern endpoint endpoints location",
    "match.methods": "method methods verb verbs httpmethod httpmethods",
    "match.hosts": "host hosts hostname hostnames domain domains",
    "match.ips": "ips ip cidr cidrs networks",
    "match.countries": "countries country geo geoip countrycodes",
    "match.asns": "asns asn",
    "match.bots": "bots verifiedbots crawlers",
    "match.query": "query",
    "match.except": "except exclude excludes ignore unless not skippaths excludepaths",
    'write limit: { from: "custom:NAME", max: 1000, default: 100 }':
      "limitfn limitfunction getlimit dynamiclimit dynamiclimits customlimit customlimits",
    "write limit: 0, with match for some requests":
      "deny denyall blocked denylist blocklist blacklist blockedips denyips",
    "write exempt or match.except instead":
      "skip skipif allowlist whitelist allow bypass requestskip exemptions trusted trustedips allowedips",
    response:
      "status statuscode message body error errorcode errormessage rejectedcode responsestatus handler denyresponse headers errorhandler onratelimited onlimitreached onlimit statustext",
    onError:
      "failopen failclosed failmode faulttolerant skiponerror passonstoreerror onfailure failuremode failuremodedeny fallback onstoreerror failureopen failureclosed onfail",
    mode: "dryrun shadow shadowmode logonly test enforce enforcement enabled disabled active reportonly enable disable soft softlimit warn flag mark",
    cost: "weight tokensperrequest hitsaddend requestweight price credits increment pointstoconsume",
    count:
      "skipsuccessfulrequests skipfailedrequests requestwassuccessful countstatus statuses countonly onlystatus",
    tiers: "plans plan tier roles levels overrides users",
    start: "offset anchor startat reset resetat startsat align",
    lease: "cache ephemeralcache leasing localcache batch",
    maxReserved: "reserved maxreserve maxreservation reservation",
    wait: "maxwait waittime waittimeout queue queuetimeout",
    async: "asynchronous isasync nonblocking optimistic background",
    'write cost: { reserve: …, settle: "header:NAME" }': "reserve settle",
    sliding: "slidingwindow slidingwindowlog slidingwindowcounter rolling rollingwindow",
    "remove it: rules count in fixed windows, or in sliding windows with sliding: true":
      "algorithm type strategy limiter fixedwindow tokenbucket leakybucket",
    "remove it: Weir sends Retry-After with every denial": "retryafter sendretryafter",
    "write it as a comment: // …": "description comment note notes",
    'write the offset of your zone in start, such as start: "2026-01-01T00:00:00+01:00"':
      "utcoffset offsetms",
    "remove it: Weir logs failures and denials, see docs/responses.md":
      "analytics logging log logger metrics",
    "remove it: when several rules match, all of them count the request":
      "priority order weightorder",
  },
  limits: {
    limit:
      "max quota requests points tokens maxrequests requestsperunit hits calls threshold rate refillrate",
    window:
      "windowms windowsize duration interval period ttl timewindow unit per seconds time every",
    "write capacity for quota of earlier windows: it includes the limit":
      "burst maxtokens bucketsize",
    maxReserved: "reserve reserved maxreserve",
    sliding: "slidingwindow rolling",
  },
  match: {
    paths: "path url urls uri uris pathname route routes pattern patterns endpoint endpoints",
    methods: "method verb verbs httpmethod",
    hosts: "host hostname hostnames domain domains subdomain",
    headers: "header httpheaders requestheaders",
    query: "queries queryparams querystring searchparams params search",
    ips: "ip ipaddress ipaddresses address addresses cidr cidrs network networks sourceip remoteip clientip iprange ipranges range ranges",
    countries: "country countrycode countrycodes geo geoip geocountry location locations",
    asns: "asn as asnum asnumber asnumbers autonomoussystem autonomoussystems",
    bots: "bot verifiedbot verifiedbots isbot botcategory botcategories crawlers",
    except: "not exclude excludes ignore unless skip excluding",
    'write paths: ["/api/*"] with your prefix': "prefix pathprefix prefixes",
    'match has no condition on cookies; to count each value separately, write it as the key: key: "cookie:NAME"':
      "cookies cookie",
    "match has no condition on bodies; compute a key from the body with custom.keys": "body json",
    'write headers: { "user-agent": { prefix: "…" } }': "useragent useragents ua",
  },
  tiers: {},
};
