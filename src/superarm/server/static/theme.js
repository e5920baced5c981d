// Runs before the page is drawn, so that a chosen theme does not flash.
(() => {
  try {
    const theme = localStorage.getItem("superarm:theme");
    if (theme) document.documentElement.dataset.theme = theme;
  } catch {
    // No storage: the system's theme is taken.
  }
})();
