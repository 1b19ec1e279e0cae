"""Eight raw tables as users have them: invented rows with the columns and the quirks of well-known files.

Each function gives the bytes of a file and the name of its target column.
"""

import numpy as np

WORDS = np.array(["river", "bank", "mill", "road", "park", "school", "bridge", "castle", "market", "north", "old"])


def _lines(header, rows, separator=","):
    quoted = [separator.join(f'"{c}"' if separator in c else c for c in map(str, row)) for row in rows]
    return "\n".join([header, *quoted]) + "\n"


def penguins(n=90, seed=0):
    """Missing values, text columns, an unnamed first column that numbers the rows."""
    rng, rows = np.random.default_rng(seed), []
    for i in range(n):
        kind = i * 3 // n
        length = 38 + 5 * kind + rng.normal(scale=1.5)
        mass = (3700, 3750, 5100)[kind] + rng.normal(scale=250)
        island = ("Torgersen", "Dream", "Biscoe")[kind if rng.random() < 0.7 else rng.integers(3)]
        sex = rng.choice(["male", "female", "NA"], p=[0.48, 0.48, 0.04])
        cells = [
            f"{length:.1f}",
            f"{18 - kind + rng.normal(scale=0.6):.1f}",
            f"{190 + 12 * kind + rng.normal(scale=5):.0f}",
        ]
        cells = ["NA"] * 4 if i % 40 == 7 else [*cells, f"{mass:.0f}"]
        rows.append([i + 1, ("Adelie", "Chinstrap", "Gentoo")[kind], island, *cells, sex, 2007 + i % 3])
    header = '"",species,island,bill_length_mm,bill_depth_mm,flipper_length_mm,body_mass_g,sex,year'
    return _lines(header, rows).encode(), "species"


def titanic(n=120, seed=1):
    """Names with commas, quotes, empty cells, codes of cabins and tickets, a passenger number."""
    rng, rows = np.random.default_rng(seed), []
    for i in range(n):
        sex = rng.choice(["male", "female"])
        survived = int(rng.random() < (0.8 if sex == "female" else 0.15))
        title = "Mr." if sex == "male" else "Mrs."
        age = "" if rng.random() < 0.2 else f"{rng.uniform(1, 70):.1f}"
        name = f'"{rng.choice(WORDS).title()}, {title} {rng.choice(WORDS).title()} ""{rng.choice(WORDS)}"" {i}"'
        cabin = "" if rng.random() < 0.7 else f"C{rng.integers(100)}"
        ticket = f"A/{rng.integers(9)} {rng.integers(20000, 90000)}"
        cells = [i + 1, survived, rng.integers(1, 4), name, sex, age, rng.integers(4), rng.integers(3), ticket]
        rows.append(
            [*cells, f"{rng.lognormal(3):.4f}", cabin, rng.choice(["S", "C", "Q", ""], p=[0.6, 0.25, 0.1, 0.05])]
        )
    header = "PassengerId,Survived,Pclass,Name,Sex,Age,SibSp,Parch,Ticket,Fare,Cabin,Embarked"
    return "\n".join([header, *(",".join(map(str, row)) for row in rows)]).encode(), "Survived"


def diamonds(n=150, seed=2):
    """Levels with blanks, skewed prices."""
    rng, rows = np.random.default_rng(seed), []
    for _ in range(n):
        cut = rng.choice(["Ideal", "Premium", "Very Good"], p=[0.5, 0.3, 0.2])
        table = {"Ideal": 55.5, "Premium": 59.5, "Very Good": 57.5}[cut] + rng.normal(scale=0.8)
        carat = rng.lognormal(-0.5, 0.4)
        color, clarity = rng.choice(list("DEFGHIJ")), rng.choice(["SI2", "SI1", "VS2", "VS1", "IF"])
        size = [f"{6.4 * carat ** (1 / 3):.2f}", f"{6.41 * carat ** (1 / 3):.2f}", f"{3.9 * carat ** (1 / 3):.2f}"]
        rows.append([f"{carat:.2f}", cut, color, clarity, f"{61.7:.1f}", f"{table:.1f}", int(4000 * carat**2), *size])
    return _lines("carat,cut,color,clarity,depth,table,price,x,y,z", rows).encode(), "cut"


def weather(n=200, seed=3):
    """Dates, and a class that is rare."""
    rng, rows = np.random.default_rng(seed), []
    for i in range(n):
        day = np.datetime64("2012-01-01") + 3 * i
        wet = rng.random() < 0.4
        rain = round(rng.exponential(6) + 0.3, 1) if wet else 0.0
        warm = 12 - 8 * np.cos(2 * np.pi * 3 * i / 365) + rng.normal(scale=3)
        kind = ("snow" if warm < 4 else "rain") if wet else ("fog" if rng.random() < 0.2 else "sun")
        rows.append([day, rain, f"{warm + 4:.1f}", f"{warm - 3:.1f}", f"{rng.gamma(3):.1f}", kind])
    return _lines("date,precipitation,temp_max,temp_min,wind,weather", rows).encode(), "weather"


def bank(n=120, seed=4):
    """Semicolons, decimal commas, divided thousands, days first, Latin-1, an empty last column."""
    rng, rows = np.random.default_rng(seed), []
    shops = {"Lebensmittel": ["Bäckerei Müller", "Großmarkt Köln"], "Miete": ["Wohnbau Süd"], "Gehalt": ["Öko GmbH"]}
    for i in range(n):
        kind = list(shops)[i % 3]
        amount = {
            "Lebensmittel": -rng.uniform(3, 90),
            "Miete": -rng.uniform(700, 1300),
            "Gehalt": rng.uniform(1900, 4200),
        }[kind]
        text = f"{amount:,.2f}".replace(",", "_").replace(".", ",").replace("_", ".")
        date = f"{rng.integers(1, 29):02d}.{rng.integers(1, 13):02d}.2023"
        rows.append([date, rng.choice(shops[kind]), rng.choice(["Überweisung", "Lastschrift"]), text, "EUR", kind, ""])
    header = "Buchungstag;Empfänger;Vorgang;Betrag;Währung;Kategorie;"
    return _lines(header, rows, ";").encode("latin-1"), "Kategorie"


def churn(n=120, seed=5):
    """Ids that are text, truth values, a number column with blanks in it, UTF-16 with tabs (as spreadsheets write)."""
    rng, rows = np.random.default_rng(seed), []
    for i in range(n):
        months, contract = rng.integers(0, 72), rng.choice(["Month-to-month", "One year", "Two year"])
        leaves = rng.random() < (0.95 if contract == "Month-to-month" else 0.05)
        total = " " if months == 0 else f"{months * rng.uniform(20, 110):.2f}"
        code = f"{rng.integers(1000, 9999)}-{''.join(rng.choice(list('ABCDEFGH'), 5))}{i}"
        rows.append([code, rng.choice(["True", "False"]), months, contract, total, "Yes" if leaves else "No"])
    return _lines("customerID\tsenior\ttenure\tContract\tTotalCharges\tChurn", rows, "\t").encode("utf-16"), "Churn"


def reviews(n=120, seed=6):
    """Long text, dates in three formats, and a byte-order mark."""
    rng, rows = np.random.default_rng(seed), []
    good, bad = ["lovely", "great", "friendly", "clean"], ["awful", "dirty", "late", "rude"]
    for i in range(n):
        liked = i % 2
        words = [*rng.choice(WORDS, 9), *rng.choice(good if liked else bad, 2)]
        rng.shuffle(words)
        form = ("2021-{1:02d}-{0:02d}", "{1}/{0}/2021", "{0} Mar 2021")[i % 3]
        rows.append([form.format(rng.integers(13, 28), rng.integers(1, 13)), " ".join(words), ("bad", "good")[liked]])
    return b"\xef\xbb\xbf" + _lines("when,review,verdict", rows).encode(), "verdict"


def census(n=160, seed=7):
    """Question marks for what is missing, blanks after commas, words among numbers, a column with no cell."""
    rng, rows = np.random.default_rng(seed), []
    for i in range(n):
        job = rng.choice(["Sales", "Tech-support", "Craft-repair", "?"])
        hours = "part time" if i % 50 == 3 else str(rng.integers(20, 60))
        rich = rng.random() < (0.8 if job == "Tech-support" else 0.2)
        rows.append(
            [
                rng.integers(18, 80),
                f" {job}",
                f" {rng.choice(['Male', 'Female'])}",
                f" {hours}",
                "",
                " >50K" if rich else " <=50K",
            ]
        )
    return _lines("age, job, sex, hours, notes, income", rows).encode(), "income"


TABLES = {table.__name__: table for table in (penguins, titanic, diamonds, weather, bank, churn, reviews, census)}
