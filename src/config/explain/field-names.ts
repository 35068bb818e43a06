/** A place in a configuration whose fields have fixed names. */
export type Place =
  | "config"
  | "rule"
  | "match"
  | "limits"
  | "cost"
  | "tiers"
  | "exempt"
  | "response"
  | "origin"
  | "jwt";

/**
 * The names that other limiters and users give to Weir's fields, in lower case and without
 * separators: those of @upstash/ratelimit, hono-rate-limiter, express-rate-limit,
 * rate-limiter-flexible, Kong, Envoy, nginx, Cloudflare and Arcjet. The key is Weir's field, or a
 * path to it from the same object.
 */
export const RENAMED: Readonly<Record<Place, Readonly<Record<string, string>>>> = {
  config: {
    rules: "rule limiters ratelimits ratelimit ratelimitrules policies routes config configs",
    timeoutMs: "timeout timeoutmillis timeoutinms deadline redistimeout storetimeout",
    headers:
      "standardheaders legacyheaders enableheaders setheaders sendheaders responseheaders draft hideclientheaders enablexratelimitheaders",
    prefix: "keyprefix namespace redisprefix storeprefix",
    origin: "upstream target backend proxy proxypass originurl server destination",
    origins: "upstreams backends targets proxies originbyhost originsbyhost hostorigins hosts",
    store: "storage driver database db policy",
    ipv6Prefix: "ipv6subnet ipv6mask ipv6 subnet ipv6prefixlength",
    caseSensitivePaths: "casesensitive casesensitiverouting",
    denialLog:
      "denylog deniallogs logdenials logdenied logdenial logblocked loglimit loglines maxloglines",
    serverTiming: "servertimings timing timings servertimingheader",
    nativeLimiter: "floor nativeratelimit cloudflarelimiter unsafe",
    jwt: "jwks auth jwtsecret issuer",
    "custom.keys": "keys keyfunctions functions customkeys",
  },
  rule: {
    limit:
      "max quota requests points tokens rate maxrequests maxreqs requestsperunit requestsperperiod hits calls threshold amount allowed maxhits refillrate maxcalls ratelimit count limitmax",
    window:
      "windowms windowsize windowlength duration interval period ttl timewindow timeframe unit per seconds fillinterval refillinterval windowseconds windowinseconds periodseconds windowsec durationms every time",
    limits: "windows quotas rates limiters bands",
    capacity: "burst burstsize burstlimit maxtokens bucketsize bucketcapacity nodelay maxburst",
    ban: "bans banlengths banlist blockdurations strikes escalation blockduration blockfor banfor banduration block penalty penaltytime cooldown mitigationtimeout lockout jail bantime inmemoryblockduration delay",
    key: "keys by keygenerator keyby keyfn getkey identifier limitby characteristics identifyby groupby discriminator zone",
    name: "id label title ruleid rulename policyname descriptor",
    "match.paths":
      "path paths route routes url urls uri uris pathname pattern endpoint endpoints location",
    "match.methods": "method methods verb verbs httpmethod httpmethods",
    "match.hosts": "host hosts hostname hostnames domain domains",
    "match.ips": "ips ip cidr cidrs networks denylist blocklist blacklist deny blockedips denyips",
    "match.countries": "countries country geo geoip countrycodes",
    "match.asns": "asns asn",
    "match.bots": "bots verifiedbots crawlers",
    "match.query": "query",
    "match.except": "except exclude excludes ignore unless not skippaths excludepaths",
    exempt:
      "skip skipif allowlist whitelist allow bypass requestskip exemptions trusted trustedips allowedips",
    response:
      "status statuscode message body error errorcode errormessage rejectedcode responsestatus handler denyresponse headers errorhandler onratelimited onlimitreached onlimit statustext",
    onError:
      "failopen failclosed failmode faulttolerant skiponerror passonstoreerror onfailure failuremode failuremodedeny fallback onstoreerror failureopen failureclosed onfail",
    mode: "dryrun shadow shadowmode logonly test enforce enforcement enabled disabled active reportonly enable disable soft softlimit warn flag mark",
    tellOrigin:
      "tellupstream tellbackend tellapp upstreamheaders requestheaders originheaders forwardquota forwardremaining sendtoorigin",
    cost: "weight tokensperrequest hitsaddend requestweight price credits increment pointstoconsume",
    count:
      "skipsuccessfulrequests skipfailedrequests requestwassuccessful countstatus statuses countonly onlystatus",
    tiers: "plans plan tier roles levels customlimits overrides dynamiclimits users",
    timeZone: "tz zone iana timezonename",
    start: "offset anchor startat reset resetat startsat align",
    shards: "shard sharding partitions buckets counters",
    lease: "cache ephemeralcache leasing localcache batch",
    maxReserved: "reserve reserved maxreserve maxreservation reservation",
    retryJitter: "jitter jitterms retryafterjitter",
    localShare: "share localpart localratio",
  },
  limits: {
    limit:
      "max quota requests points tokens maxrequests requestsperunit hits calls threshold rate refillrate",
    window:
      "windowms windowsize duration interval period ttl timewindow unit per seconds time every",
    capacity: "burst maxtokens bucketsize",
    maxReserved: "reserve reserved maxreserve",
  },
  cost: {
    from: "custom function body bytes request before source contentlength",
    reserve: "estimate hold upfront reserved",
    settle: "header response usage actual after final then used",
    max: "maximum limit cap ceiling most",
    default: "fallback otherwise missing unknown",
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
  },
  tiers: {
    by: "key keys field name claim on from identifier",
    limits: "plans tiers levels values quotas limit",
  },
  exempt: {
    ips: "ip address addresses cidr cidrs network networks ipaddress range ranges allow",
    headers: "header secret secrets token tokens",
  },
  response: {
    status: "code statuscode httpstatus",
    body: "message text json content error html",
    headers: "header contenttype",
  },
  origin: {
    url: "uri href address target host upstream base baseurl origin",
    binding: "service worker servicebinding name",
  },
  jwt: {
    jwks: "jwksuri jwksurl url publickey publickeys keys keyset wellknown",
    issuer: "iss",
    audience: "aud",
    algs: "algorithms",
    alg: "algorithm",
    header: "headername from",
    secret: "key signingkey hmac sharedsecret secretname",
  },
};

/** Advice for names that have no field of Weir, in lower case and without separators. */
export const NO_FIELD: Readonly<Record<Place, Readonly<Record<string, string>>>> = {
  config: {
    "set the secrets UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN instead":
      "url token upstash redisurl redistoken upstashurl upstashredisresturl upstashredisresttoken connection redis",
    "remove it: Weir takes the client's address from Cloudflare":
      "trustproxy proxies trustedproxies",
    "remove it: Weir logs failures and denials, see docs/responses.md":
      "analytics logging log logger metrics",
  },
  rule: {
    "remove it: every rule counts in fixed windows":
      "algorithm type strategy limiter slidingwindow fixedwindow tokenbucket leakybucket sliding",
    "remove it: Weir sends Retry-After with every denial": "retryafter sendretryafter",
    "write it as a comment: // …": "description comment note notes",
    'write the offset of your zone in start, such as start: "2026-01-01T00:00:00+01:00"':
      "utcoffset offsetms",
    "remove it: Weir logs failures and denials, see docs/responses.md":
      "analytics logging log logger metrics",
    "remove it: when several rules match, all of them count the request":
      "priority order weightorder",
  },
  match: {
    'write paths: ["/api/*"] with your prefix': "prefix pathprefix prefixes",
    'match has no condition on cookies; to count each value separately, write it as the key: key: "cookie:NAME"':
      "cookies cookie",
    "match has no condition on bodies; compute a key from the body with custom.keys": "body json",
    'write headers: { "user-agent": { prefix: "…" } }': "useragent useragents ua",
  },
  limits: {},
  cost: {},
  tiers: {},
  exempt: {
    'write match.except instead: match: { except: { paths: ["/health"] } }':
      "path paths method methods host hosts url urls",
  },
  response: {},
  origin: {},
  jwt: {},
};
