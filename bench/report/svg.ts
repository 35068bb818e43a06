import * as echarts from "echarts/core";
import { SVGRenderer } from "echarts/renderers";

echarts.use([SVGRenderer]);

interface Size {
  readonly width: number;
  readonly height: number;
}

/**
 * Renders an ECharts chart as SVG.
 *
 * @param option ECharts' option object; its chart types and components must be registered
 * @param title the text for screen readers; it must not contain characters that XML escapes
 */
export function renderSvg(option: echarts.EChartsCoreOption, size: Size, title: string): string {
  const chart = echarts.init(null, null, { renderer: "svg", ssr: true, ...size });
  chart.setOption({ animation: false, backgroundColor: "#ffffff", ...option });
  const svg = chart.renderToSVGString();
  chart.dispose();
  return (
    svg
      // The styles have an effect only under a mouse pointer, so they are removed.
      .replace(/<style.*?<\/style>\s*/s, "")
      .replace(/<svg [^>]*>/, (tag) => `${tag}\n<title>${title}</title>`)
  );
}
