/** The formats of logs. `combined` includes `common`, and lines with a host name before them. */
export const LOG_FORMATS = ["combined", "logpush", "json", "har"] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];
