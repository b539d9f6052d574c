"""Columns and flags in German, French, Spanish, Italian, Portuguese and Dutch."""

from __future__ import annotations

from pathlib import Path

import pytest

from clickbridge import Impression, PairCount, read_docs, read_log
from clickbridge.errors import InputError
from clickbridge.log.column_names import _DOCUMENT, _LOG, folded, usual_columns
from clickbridge.log.recognise import FIELDS
from clickbridge.log.searches import event_kind
from clickbridge.log.translated_names import DOUBTFUL, NAMES, NO, YES

TRIPLES = "query doc_id clicks impressions user time"
LOGS = [
    ("Suchbegriff;Artikelnummer;Klicks;Impressionen;Kundennummer;Datum", TRIPLES),
    ("Suchanfrage;Produkt-ID;Anzahl Klicks;Einblendungen;Benutzer;Zeitpunkt", TRIPLES),
    ("Stichwort;ArtikelNr;Klicks;Impressionen;nutzer_id;Datum/Uhrzeit", TRIPLES),
    ("Terme de recherche;Référence produit;Clics;Affichages;Utilisateur;Date", TRIPLES),
    ("requête;code_produit;nb_clics;impressions;idUtilisateur;Horodatage", TRIPLES),
    ("REQUETE;CODE PRODUIT;NOMBRE DE CLICS;AFFICHAGES;VISITEUR;DATE HEURE", TRIPLES),
    ("Término de búsqueda;Código de producto;Clics;Impresiones;Usuario;Fecha", TRIPLES),
    ("consulta;idProducto;clics;impresiones;id_usuario;fecha_hora", TRIPLES),
    ("Termine di ricerca;Codice prodotto;Clic;Impressioni;Utente;Data", TRIPLES),
    ("ricerca;id_prodotto;numero_clic;impressioni;utente;data_ora", TRIPLES),
    ("Pesquisa;Código do produto;Cliques;Impressões;Utilizador;Data", TRIPLES),
    ("termoDePesquisa;idProduto;cliques;impressoes;usuario;dataHora", TRIPLES),
    ("Zoekterm;Productnummer;Klikken;Vertoningen;Gebruiker;Datum", TRIPLES),
    ("zoekopdracht;artikelnr;aantal_kliks;vertoningen;klantnummer;tijdstip", TRIPLES),
]


@pytest.mark.parametrize(("header", "columns"), LOGS)
def test_columns_of_a_log(tmp_path: Path, header: str, columns: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(f"{header}\nrosa;A1;3;40;u1;2024-01-31\nblau;A2;5;60;u2;2024-02-01\n", encoding="utf-8")
    log = read_log(str(path))
    assert [(r.query, r.doc_id, r.clicks, r.impressions, r.user) for r in log] == [  # type: ignore[union-attr]
        ("rosa", "A1", 3, 40, "u1"), ("blau", "A2", 5, 60, "u2")
    ]  # fmt: skip
    assert log.layouts[str(path)].columns == dict(zip(columns.split(), header.split(";"), strict=True))


@pytest.mark.parametrize(
    ("header", "title"),
    [
        ("Artikelnummer;Artikel;Titel;Beschreibung", "Titel"),
        ("Produktnummer;Hersteller;Produktbezeichnung;Beschreibung", "Produktbezeichnung"),
        ("id produit;Marque;Titre;Description", "Titre"),
        ("Código;Marca;Título;Descripción", "Título"),
        ("codigo_producto;marca;nombre;descripcion", "nombre"),
        ("Codice articolo;Marca;Nome prodotto;Descrizione", "Nome prodotto"),
        ("idProduto;Marca;nomeDoProduto;Descrição", "nomeDoProduto"),
        ("productnr;merk;productnaam;omschrijving", "productnaam"),
    ],
)
def test_columns_of_documents(tmp_path: Path, header: str, title: str) -> None:
    path = tmp_path / "docs.csv"
    path.write_text(f"{header}\nA1;acme;Rosa;eins\nA2;acme;Blau;zwei\n", encoding="utf-8")
    assert [(d.doc_id, d.fields["title"]) for d in read_docs(str(path))] == [("A1", "Rosa"), ("A2", "Blau")]


@pytest.mark.parametrize(
    ("name", "yes", "no"),
    [
        ("angeklickt", "ja", "nein"), ("Geklickt", "Ja", "Nein"), ("geklickt", "WAHR", "FALSCH"),
        ("cliqué", "oui", "non"), ("clique", "VRAI", "FAUX"), ("clicado", "sí", "no"), ("clic", "VERDADERO", "FALSO"),
        ("cliccato", "sì", "no"), ("cliccato", "VERO", "FALSO"), ("clicou", "sim", "não"),
        ("clicado", "Verdadeiro", "Falso"), ("geklikt", "ja", "nee"), ("geklikt", "WAAR", "ONWAAR"),
        ("clicked", "si\u0300", "no"),
    ],
)  # fmt: skip
def test_flags(tmp_path: Path, name: str, yes: str, no: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(f"query,doc_id,position,{name}\na,1,1,{no}\na,2,2,{yes}\n", encoding="utf-8")
    assert list(read_log(str(path))) == [Impression("a", ["1", "2"], ["2"])]


def test_a_word_that_is_no_flag_is_said(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("query,doc_id,clicked\n" + "a,1,ja\n" * 2000 + "a,1,vielleicht\n")
    log = read_log(str(path), format="shown")
    assert next(iter(log)) == PairCount("a", "1", 1, 1)
    list(log)
    assert log.rejects.count == 1


@pytest.mark.parametrize(
    ("header", "row", "field", "name"),
    [
        ("query,doc_id,data", "a,1,x7", "time", None),  # anything at all
        ("query,doc_id,data", "a,1,31/12/2024", "time", "data"),
        ("query,doc_id,timestamp,data", "a,1,2024-01-31,2024-02-01", "time", "timestamp"),
        ("doc_id,consultas,suchtext", "1,12,a", "query", "suchtext"),  # how many
        ("query,consulta,doc_id", "a,b,1", "query", "query"),
        ("q,producto,url", "a,Rosa,/x", "doc_id", "producto"),
        ("q,producto,url", "a,Rosa roja,/x", "doc_id", "url"),
        ("q,codigo,sku", "a,7,A1", "doc_id", "sku"),
    ],
)
def test_names_that_may_be_something_else(tmp_path: Path, header: str, row: str, field: str, name: str | None) -> None:
    path = tmp_path / "log.csv"
    path.write_text(f"{header}\n{row}\n")
    log = read_log(str(path))
    list(log)
    assert log.layouts[str(path)].columns.get(field) == name


def test_events(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(
        "Ereignis;Suchbegriff;Artikelnummer;Sitzung\nSuche;rosa;;s1\nKlick;;A1;s1\nSuche;blau;;s2\nKlick;;A2;s2\n"
    )
    pages = list(read_log(str(path)))
    assert [(page.query, page.clicks) for page in pages] == [("rosa", ["A1"]), ("blau", ["A2"])]  # type: ignore[union-attr]
    assert [event_kind(name) for name in ("búsqueda", "clic_resultado", "recherche")] == ["search", "click", "search"]


def test_no_name_means_two_fields() -> None:
    """Names are folded, and none is that of two fields in any of the languages; in English `shown` is."""
    for table in (_LOG, _DOCUMENT):
        fields = {ours: {*names.split(), *NAMES.get(ours, "").split()} for ours, names in table.items()}
        words = [word for names in fields.values() for word in names if word != "shown"]
        assert len(words) == len(set(words))
        assert all(folded(word) == word for word in words)
    assert not {*YES} & {*NO}
    assert all(
        word in f"{NAMES[ours]} {_LOG.get(ours, '')}".split() for ours, words in DOUBTFUL.items() for word in words
    )


def test_accents_make_no_difference() -> None:
    assert folded("Término de Búsqueda") == folded("TERMINO_DE_BUSQUEDA") == "terminodebusqueda"
    assert folded("Requête") == folded("Reque\u0302te") == "requete"
    assert folded("検索ガイド") == "検索ガイド"
    found = usual_columns("log", ["Größe", "Suchanfrage"], {}, FIELDS, lambda ours, theirs: True)
    assert found == {"query": "Suchanfrage"}


@pytest.mark.parametrize(("header", "repeated"), [("url;titre;produit", "sac"), ("url;titulo;codigo", "ROJO")])
def test_kinds_of_documents_are_no_ids(tmp_path: Path, header: str, repeated: str) -> None:
    path = tmp_path / "docs.csv"
    path.write_text(f"{header}\n/a;Rosa;{repeated}\n/b;Blau;{repeated}\n", encoding="utf-8")
    assert [d.doc_id for d in read_docs(str(path))] == ["/a", "/b"]


def test_one_query_that_is_a_number_leaves_a_column_of_queries(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    rows = [f"rosa {n};A{n};1" for n in range(30)]
    path.write_text("\n".join(["Suchanfragen;Artikelnummer;Klicks", *rows, "4711;A1;2", ""]), encoding="utf-8")
    assert list(read_log(str(path)))[-1] == PairCount("4711", "A1", 2)


@pytest.mark.parametrize("time", ["2024-01-05T10:00:00", "2024-01-05T10:00:00Z", "2024-01-05"])
def test_days_with_a_time_are_dates(tmp_path: Path, time: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(f"ricerca;idprodotto;data\nrosa;A1;{time}\n", encoding="utf-8")
    (pair,) = read_log(str(path))
    assert pair.time is not None  # type: ignore[union-attr]


def test_the_number_of_hits_is_no_list_of_results(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("Suchbegriff;Artikelnr;Treffer\nrosa;A1;1 204\nblau;A2;2 310\n", encoding="utf-8")
    assert list(read_log(str(path))) == [PairCount("rosa", "A1"), PairCount("blau", "A2")]


@pytest.mark.parametrize("header", ["query,shown,doc_id", "query,shown,clicked", "query,hits,clicked"])
def test_ids_of_three_digits_are_no_counts(tmp_path: Path, header: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(f"{header}\nny,101 102 103,102\ntv,104 105 106,106\n")
    assert list(read_log(str(path))) == [
        Impression("ny", ["101", "102", "103"], ["102"]), Impression("tv", ["104", "105", "106"], ["106"])
    ]  # fmt: skip


def test_a_code_is_no_document_of_a_log(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("query,reference,clicks\nny,summer,3\ntv,summer,4\n")
    with pytest.raises(InputError, match="it has query, reference, clicks"):
        list(read_log(str(path)))
