/** Parts of the user agents of well-known crawlers, in lower case, and the names that reports show. */
const CRAWLERS: readonly (readonly [part: string, name: string])[] = [
  ["googlebot", "Googlebot"],
  ["google-inspectiontool", "Google-InspectionTool"],
  ["adsbot-google", "AdsBot-Google"],
  ["bingbot", "bingbot"],
  ["msnbot", "msnbot"],
  ["yandexbot", "YandexBot"],
  ["baiduspider", "Baiduspider"],
  ["duckduckbot", "DuckDuckBot"],
  ["applebot", "Applebot"],
  ["yahoo! slurp", "Yahoo! Slurp"],
  ["petalbot", "PetalBot"],
  ["seznambot", "SeznamBot"],
  ["gptbot", "GPTBot"],
  ["oai-searchbot", "OAI-SearchBot"],
  ["chatgpt-user", "ChatGPT-User"],
  ["claudebot", "ClaudeBot"],
  ["perplexitybot", "PerplexityBot"],
  ["amazonbot", "Amazonbot"],
  ["bytespider", "Bytespider"],
  ["meta-externalagent", "meta-externalagent"],
  ["facebookexternalhit", "facebookexternalhit"],
  ["twitterbot", "Twitterbot"],
  ["linkedinbot", "LinkedInBot"],
  ["pinterestbot", "Pinterestbot"],
  ["slackbot", "Slackbot"],
  ["ccbot", "CCBot"],
  ["ahrefsbot", "AhrefsBot"],
  ["semrushbot", "SemrushBot"],
  ["mj12bot", "MJ12bot"],
  ["dotbot", "DotBot"],
  ["uptimerobot", "UptimeRobot"],
  ["pingdom", "Pingdom"],
];

/**
 * Returns the well-known crawler that a user agent names; undefined if it names none. Everyone can send such a
 * user agent, so it is only a claim.
 */
export function claimedCrawler(userAgent: string): string | undefined {
  const lower = userAgent.toLowerCase();
  return CRAWLERS.find(([part]) => lower.includes(part))?.[1];
}
