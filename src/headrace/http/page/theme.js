// Sets the chosen colours before anything is painted.
try {
  const chosen = localStorage.getItem("headrace_theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Storage may be forbidden: the colours of the system apply.
}
