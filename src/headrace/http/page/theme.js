// Sets the colours before anything is painted: `data-chosen` are those that somebody chose, `data-theme` those that apply.
{
  const { dataset } = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => (dataset.theme = dataset.chosen ?? (dark.matches ? "dark" : "light"));
  try {
    const chosen = localStorage.getItem("headrace_theme");
    if (chosen === "light" || chosen === "dark") dataset.chosen = chosen;
  } catch {
    // Storage may be forbidden: the colours of the system apply.
  }
  apply();
  dark.addEventListener("change", apply);
}
