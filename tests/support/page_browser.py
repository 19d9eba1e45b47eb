"""Drives Chromium over its driver. Every step waits for what it needs; none sleeps for a fixed time."""

from typing import Any

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

PATIENCE = 150
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
)
QUIET = "return !document.querySelector('.questions.quiet')"


class Browser:
    """One window of Chromium."""

    def __init__(self, profile: str) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for each in (*OPTIONS, f"--user-data-dir={profile}"):
            options.add_argument(each)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))

    def quit(self) -> None:
        self.driver.quit()

    def reset(self) -> None:
        """Forget the last page and its messages."""
        self.driver.get("about:blank")
        self.size(1280, 900)
        self.colours("light")
        self.driver.get_log("browser")

    def open(self, address: str) -> None:
        """Open an address of the page and wait until it is connected."""
        self.driver.get(address)
        self.find("#link[data-state=open]")

    def size(self, width: int, height: int, *, phone: bool = False) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def colours(self, scheme: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    # ── looking ──

    def find(self, selector: str, text: str = "") -> WebElement:
        """Wait for an element that is shown and has a text."""

        def found(driver: Any) -> WebElement | None:
            for each in driver.find_elements(By.CSS_SELECTOR, selector):
                if each.is_displayed() and text in each.text:
                    return each
            return None

        wait = WebDriverWait(self.driver, PATIENCE, 0.02, ignored_exceptions=(Exception,))
        element: WebElement = wait.until(found, f"{selector} with {text!r}")
        return element

    def gone(self, selector: str) -> None:
        """Wait until no element is shown."""

        def none(driver: Any) -> bool:
            return not any(each.is_displayed() for each in driver.find_elements(By.CSS_SELECTOR, selector))

        WebDriverWait(self.driver, PATIENCE, 0.02, ignored_exceptions=(Exception,)).until(none, selector)

    def script(self, text: str, *arguments: Any) -> Any:
        return self.driver.execute_script(text, *arguments)

    def wait_for(self, script: str) -> None:
        """Wait until a script returns true."""
        WebDriverWait(self.driver, PATIENCE, 0.02).until(lambda _: self.script(script), script)

    def messages(self) -> list[str]:
        """Return what the browser reports: errors, and what the content security policy stopped."""
        return [each["message"] for each in self.driver.get_log("browser") if each["level"] == "SEVERE"]

    # ── acting ──

    def card(self, number: int = 1) -> WebElement:
        """Wait for a question that can be answered."""
        found = self.find(f".card:nth-of-type({number})")
        self.wait_for(QUIET)
        return found

    def click(self, selector: str, text: str = "") -> None:
        """Click an element; once more if the page has replaced it in the meantime."""

        def clicked(_: Any) -> bool:
            self.find(selector, text).click()
            return True

        WebDriverWait(self.driver, PATIENCE, 0.02, ignored_exceptions=(StaleElementReferenceException,)).until(clicked)

    def press(self, *keys: str) -> None:
        """Press keys wherever the focus is."""
        for each in keys:
            ActionChains(self.driver).send_keys(each).perform()

    def picture(self, path: str) -> None:
        self.driver.save_screenshot(path)
