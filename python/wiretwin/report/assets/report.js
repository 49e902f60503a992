// Unpacks plotly.js and the figures, draws each figure in the page's theme, and keeps them in step with the
// theme, the layer buttons, the scale and the zoom. A figure is always drawn from its data and this state.
(async () => {
  "use strict";
  const root = document.documentElement;
  const live = document.getElementById("live");
  const themeButton = document.getElementById("theme");
  const plots = [...document.querySelectorAll(".plot")];
  const NARROW = 560;
  const PRINT_WIDTH = 630;
  const states = new Map(plots.map((plot) => [plot, { hidden: new Set(), linear: false, range: null, at: null }]));
  let data = { figures: {}, dark: {} };
  let printing = false;

  const isDark = () => root.dataset.theme === "dark" && !printing;

  const trouble = (text) => {
    const place = document.getElementById("trouble");
    place.textContent = text + " Every figure's data stand in the table beneath it.";
    place.hidden = false;
  };

  async function unpack(id) {
    const packed = document.getElementById(id).textContent.trim();
    if (!packed) return "";
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

  // A copy of a figure with every colour of the light theme replaced; long arrays of numbers are shared.
  function tinted(value) {
    if (typeof value === "string") return isDark() ? data.dark[value] || value : value;
    if (Array.isArray(value)) {
      const first = value.find((item) => item !== null);
      return typeof first === "number" ? value : value.map(tinted);
    }
    if (value && typeof value === "object") {
      if ("bdata" in value) return { ...value };
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, tinted(item)]));
    }
    return value;
  }

  function compose(plot) {
    const state = states.get(plot);
    const figure = tinted(data.figures[plot.dataset.figure]);
    const layout = figure.layout;
    const narrow = plot.clientWidth < NARROW || printing;
    for (const trace of figure.data) {
      if (trace.meta && state.hidden.has(trace.meta.layer)) trace.visible = false;
    }
    if (state.linear) {
      layout.yaxis.type = "linear";
      layout.yaxis.tickmode = "auto";
      layout.yaxis.rangemode = "tozero";
      layout.yaxis.ticksuffix = " " + state.linear;
      delete layout.yaxis.tickvals;
      delete layout.yaxis.ticktext;
      delete layout.yaxis.range;
    }
    if (state.range) layout.xaxis.range = state.range.slice();
    layout.autosize = !printing;
    if (printing) layout.width = PRINT_WIDTH;
    layout.dragmode = matchMedia("(pointer: coarse)").matches ? false : "zoom";
    if (narrow) {
      layout.font = { ...layout.font, size: 12 };
      layout.xaxis.nticks = 5;
      const room = Math.floor((plot.clientWidth - 80) / 58);
      if (layout.xaxis.tickvals && layout.xaxis.tickvals.length > room) thinTicks(layout.xaxis);
      layout.xaxis.tickangle = 0;
    }
    const config = {
      displaylogo: false,
      responsive: true,
      displayModeBar: false,
      scrollZoom: false,
      doubleClick: "reset",
    };
    return [figure.data, layout, config];
  }

  function thinTicks(axis) {
    const keep = (_item, at) => at % 2 === 0;
    axis.tickvals = axis.tickvals.filter(keep);
    axis.ticktext = axis.ticktext.filter(keep);
  }

  async function draw(plot) {
    if (!data.figures[plot.dataset.figure] || plot.closest("details:not([open])")) return;
    const fresh = !plot.classList.contains("drawn");
    await Plotly.react(plot, ...compose(plot));
    if (!fresh) return;
    plot.classList.add("drawn");
    plot.on("plotly_relayout", (change) => {
      const state = states.get(plot);
      if ("xaxis.range[0]" in change) state.range = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
      if (change["xaxis.autorange"]) state.range = null;
    });
  }

  const drawAll = async () => {
    for (const plot of plots) await draw(plot);
  };

  // Theme ------------------------------------------------------------------------------------------------
  const showTheme = () => {
    const dark = root.dataset.theme === "dark";
    themeButton.setAttribute("aria-pressed", String(dark));
  };
  themeButton.addEventListener("click", () => {
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("wiretwin-theme", root.dataset.theme); } catch (error) { /* not kept, no harm */ }
    showTheme();
    drawAll();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => {
    let stored = null;
    try { stored = localStorage.getItem("wiretwin-theme"); } catch (error) { stored = null; }
    if (stored) return;
    root.dataset.theme = event.matches ? "dark" : "light";
    showTheme();
    drawAll();
  });
  showTheme();

  // Layers, scale, zoom ----------------------------------------------------------------------------------
  for (const chip of document.querySelectorAll(".chip")) {
    chip.addEventListener("click", () => {
      const on = chip.getAttribute("aria-pressed") !== "true";
      chip.setAttribute("aria-pressed", String(on));
      for (const plot of chip.closest("section").querySelectorAll(".plot")) {
        states.get(plot).hidden[on ? "delete" : "add"](chip.dataset.layer);
        draw(plot);
      }
    });
  }
  for (const button of document.querySelectorAll("[data-scale]")) {
    button.addEventListener("click", () => {
      const plot = document.getElementById(button.dataset.scale + "-plot");
      const on = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(on));
      states.get(plot).linear = on ? button.dataset.unit : false;
      draw(plot);
    });
  }

  function zoom(plot, how) {
    const axis = plot._fullLayout && plot._fullLayout.xaxis;
    if (!axis) return;
    const state = states.get(plot);
    const [low, high] = axis.range.map(Number);
    const span = high - low;
    const changes = {
      in: [low + span / 4, high - span / 4],
      out: [low - span / 2, high + span / 2],
      left: [low - span / 4, high - span / 4],
      right: [low + span / 4, high + span / 4],
      reset: null,
    };
    state.range = changes[how];
    const whole = data.figures[plot.dataset.figure].layout.xaxis.range;
    if (state.range && whole && state.range[1] - state.range[0] >= whole[1] - whole[0]) state.range = null;
    draw(plot);
  }
  for (const button of document.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", () => {
      zoom(document.getElementById(button.dataset.for + "-plot"), button.dataset.zoom);
    });
  }

  // Files: a figure as it is drawn, a table as it is read -----------------------------------------------------
  function csv(table) {
    const field = (cell) => {
      const text = cell.textContent.trim();
      return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const lines = [...table.rows].map((row) => [...row.cells].map(field).join(","));
    return "data:text/csv;charset=utf-8," + encodeURIComponent(lines.join("\n") + "\n");
  }
  for (const button of document.querySelectorAll("[data-save]")) {
    button.addEventListener("click", async () => {
      const { save: format, of } = button.dataset;
      const plot = document.getElementById(of + "-plot");
      const link = document.createElement("a");
      link.download = `${of}.${format}`;
      link.href = format === "csv"
        ? csv(document.getElementById(of).querySelector("table"))
        : await Plotly.toImage(plot, { format, width: plot.clientWidth, height: plot.clientHeight, scale: 2 });
      link.click();
    });
  }

  // Keyboard in a figure: left and right walk along a curve, up and down change the curve, + and - zoom ----
  const speakable = (trace) => trace.visible !== false && trace.hoverinfo !== "skip" && trace.meta?.part !== "mark";
  function points(trace) {
    const count = trace.x ? trace.x.length : 0;
    const all = Array.from({ length: count }, (_item, at) => at);
    if (!Array.isArray(trace.text)) return all;
    return all.filter((at) => trace.text[at] !== "" && trace.text[at] !== undefined);
  }
  const plain = (html) => {
    const parsed = new DOMParser().parseFromString(html.replaceAll("<br>", ", "), "text/html");
    return parsed.body.textContent || "";
  };
  function walk(plot, key) {
    const traces = (plot._fullData || []).filter(speakable);
    if (!traces.length) return;
    const state = states.get(plot);
    if (state.at === null) state.at = { trace: 0, point: -1 };
    const step = { ArrowUp: -1, ArrowDown: 1 }[key] || 0;
    state.at.trace = (state.at.trace + step + traces.length) % traces.length;
    const trace = traces[state.at.trace];
    const stops = points(trace);
    if (!stops.length) return;
    const move = { ArrowLeft: -1, ArrowRight: 1 }[key] || 0;
    state.at.point = Math.min(stops.length - 1, Math.max(0, state.at.point + move));
    const at = stops[state.at.point];
    const said = (trace.text && trace.text[at]) || (trace.customdata && trace.customdata[at]) || "";
    const where = trace.orientation === "h" ? String(trace.y[at]) + ": " : "";
    live.textContent = plain(`${trace.name || ""}: ${where}${said}`);
    try { Plotly.Fx.hover(plot, [{ curveNumber: trace.index, pointNumber: at }]); } catch (error) { /* off the screen */ }
  }
  const ZOOM_KEYS = { "+": "in", "=": "in", "-": "out", "0": "reset" };
  for (const plot of plots) {
    plot.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key.startsWith("Arrow")) walk(plot, event.key);
      else if (event.key in ZOOM_KEYS) zoom(plot, ZOOM_KEYS[event.key]);
      else if (event.key === "Escape") Plotly.Fx.unhover(plot);
      else return;
      event.preventDefault();
    });
  }

  // Parts that are opened later, the width, printing -------------------------------------------------------
  for (const more of document.querySelectorAll("details.more")) {
    more.addEventListener("toggle", () => more.querySelectorAll(".plot").forEach((plot) => draw(plot)));
  }
  let width = innerWidth;
  addEventListener("resize", () => {
    if (printing || innerWidth === width) return;
    width = innerWidth;
    drawAll();
  });
  addEventListener("beforeprint", () => {
    printing = true;
    document.querySelectorAll("details.more").forEach((more) => { more.open = true; });
    root.dataset.screenTheme = root.dataset.theme;
    root.dataset.theme = "light";
    plots.forEach((plot) => draw(plot));
  });
  addEventListener("afterprint", () => {
    printing = false;
    root.dataset.theme = root.dataset.screenTheme || root.dataset.theme;
    drawAll();
  });

  const links = [...document.querySelectorAll("nav a")];
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((item) => item.isIntersecting)) {
      for (const link of links) {
        if (link.hash === "#" + entry.target.id) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    }
  }, { rootMargin: "-20% 0px -70% 0px" });
  document.querySelectorAll("main > section").forEach((section) => seen.observe(section));

  // Go -----------------------------------------------------------------------------------------------------
  if (plots.length) {
    if (!("DecompressionStream" in window)) {
      trouble("This browser cannot unpack the figures (it needs DecompressionStream).");
      return;
    }
    try {
      const [library, figures] = await Promise.all([unpack("plotly-packed"), unpack("figures-packed")]);
      const script = document.createElement("script");
      script.textContent = library;
      document.head.append(script);
      data = JSON.parse(figures);
      await drawAll();
    } catch (error) {
      trouble("The figures could not be drawn: " + error.message + ".");
      throw error;
    }
  }
  root.dataset.ready = "yes";
})();
