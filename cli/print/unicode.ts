type Environment = Readonly<Record<string, string | undefined>>;

/** Whether the output may have characters outside ASCII, by the locale of the environment. */
export function canPrintUnicode(
  env: Environment = process.env,
  platform: NodeJS.Platform = process.platform,
): boolean {
  if (env.TERM === "dumb") return false;
  // Windows has no locale in its environment; its terminals print UTF-8.
  if (platform === "win32") return true;
  // The first of these variables that has a value determines the locale of a program (POSIX).
  const locale = env.LC_ALL || env.LC_CTYPE || env.LANG || "";
  return /utf-?8/i.test(locale);
}
